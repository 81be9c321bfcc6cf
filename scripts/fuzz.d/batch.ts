// Sends a batch of requests on several connections at a time, and has each answer judged.
import { type Dial, exchangeRequests, type RawResponse } from './exchange.ts';
import { type FuzzRequest, printableRequest } from './requests.ts';

/** Something that went wrong. */
export class FuzzProblem extends Error {
  override readonly name = 'Problem';
  /** In words that tell problems of different kinds apart. */
  readonly kind: string;

  constructor(kind: string, details: string) {
    super(`${kind}\n${details}`);
    this.kind = kind;
  }
}

/** Where requests go to, and what becomes of their answers. */
export interface FuzzTarget {
  /** How many requests, and of how many bytes, may be on their way at once on one connection. */
  readonly pipelined: number;
  readonly pipelinedBytes: number;
  dial(first: FuzzRequest): Dial;
  /** What is wrong with an answer, in words that tell problems of different kinds apart. */
  judge(request: FuzzRequest, answer: RawResponse): readonly string[];
  /** After the answers of each connection. */
  settle(answered: readonly (readonly [request: FuzzRequest, answer: RawResponse])[]): Promise<void>;
}

/** Lanes for requests that share connections, and as many for those that have one of their own. */
const PARALLEL_CONNECTIONS = 8;

/** Sends them all, until a problem is found. @returns the first one, or null */
export async function sendBatch(batch: readonly FuzzRequest[], recipient: FuzzTarget): Promise<FuzzProblem | null> {
  let problem: FuzzProblem | null = null;
  const wrong = (kind: string, request: FuzzRequest, answer: string) => {
    const details = `request to ${request.origin}: ${printableRequest(request)}\nanswer: ${JSON.stringify(answer.slice(0, 800))}`;
    problem ??= new FuzzProblem(kind, details);
  };
  const send = async (requests: readonly FuzzRequest[]) => {
    for (let rest = requests; rest.length > 0; ) {
      const [first] = rest;
      if (first === undefined) return;
      const { responses: got, closed, how } = await exchangeRequests(recipient.dial(first), rest);
      const answered = got.map((answer, index) => [rest[index] ?? first, answer] as const);
      for (const [request, answer] of answered) {
        for (const what of recipient.judge(request, answer)) wrong(what, request, answer.text);
      }
      await recipient.settle(answered);
      const missing = rest[got.length];
      if (missing === undefined || !missing.sound) return;
      if (!closed) return wrong(`no answer: ${how.replaceAll(/\d+\.\d+\.\d+\.\d+:\d+/g, 'it')}`, missing, '');
      rest = rest.slice(got.length);
    }
  };
  const lanes = (queue: FuzzRequest[][]) =>
    Array.from({ length: PARALLEL_CONNECTIONS }, async () => {
      for (let next = queue.shift(); next !== undefined && problem === null; next = queue.shift()) await send(next);
    });
  const alone = batch.filter(({ pipelined }) => !pipelined).map((one) => [one]);
  await Promise.all([...lanes(alone), ...lanes(shared(batch, recipient))]);
  return problem;
}

/** Those that may share connections, in the same order, in groups that may be on their way at once. */
function shared(batch: readonly FuzzRequest[], { pipelined, pipelinedBytes }: FuzzTarget): FuzzRequest[][] {
  const groups: FuzzRequest[][] = [];
  for (const there of Map.groupBy(batch, ({ origin }) => origin).values()) {
    let bytes = Number.POSITIVE_INFINITY;
    for (const one of there) {
      if (!one.pipelined) continue;
      bytes += one.bytes.length;
      const last = groups.at(-1);
      if (last !== undefined && last.length < pipelined && bytes <= pipelinedBytes) {
        last.push(one);
      } else {
        groups.push([one]);
        bytes = one.bytes.length;
      }
    }
  }
  return groups;
}
