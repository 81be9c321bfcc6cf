// Sends a batch of requests on several connections at a time, and has each answer judged.
import { type Answer, type Dial, exchange } from './exchange.ts';
import { type FuzzRequest, shown } from './requests.ts';

/** Something that went wrong. */
export class Problem extends Error {
  override readonly name = 'Problem';
  /** In words that tell problems of different kinds apart. */
  readonly kind: string;

  constructor(kind: string, details: string) {
    super(`${kind}\n${details}`);
    this.kind = kind;
  }
}

/** Where requests go to, and what becomes of their answers. */
export interface Recipient {
  /** How many requests, and of how many bytes, may be on their way at once on one connection. */
  readonly pipelined: number;
  readonly pipelinedBytes: number;
  dial(first: FuzzRequest): Dial;
  /** What is wrong with an answer, in words that tell problems of different kinds apart. */
  judge(request: FuzzRequest, answer: Answer): readonly string[];
  /** After the answers of each connection. */
  settle(answered: readonly (readonly [request: FuzzRequest, answer: Answer])[]): Promise<void>;
}

/** Lanes for requests that share connections, and as many for those that have one of their own. */
const LANES = 8;

/** Sends them all, until a problem is found. @returns the first one, or null */
export async function sendBatch(batch: readonly FuzzRequest[], recipient: Recipient): Promise<Problem | null> {
  let problem: Problem | null = null;
  const wrong = (kind: string, request: FuzzRequest, answer: string) => {
    const details = `request to ${request.origin}: ${shown(request)}\nanswer: ${JSON.stringify(answer.slice(0, 800))}`;
    problem ??= new Problem(kind, details);
  };
  const send = async (requests: readonly FuzzRequest[]) => {
    for (let rest = requests; rest.length > 0; ) {
      const [first] = rest;
      if (first === undefined) return;
      const { got, closed, how } = await exchange(recipient.dial(first), rest);
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
    Array.from({ length: LANES }, async () => {
      for (let next = queue.shift(); next !== undefined && problem === null; next = queue.shift()) await send(next);
    });
  const alone = batch.filter(({ pipelined }) => !pipelined).map((one) => [one]);
  await Promise.all([...lanes(alone), ...lanes(shared(batch, recipient))]);
  return problem;
}

/** Those that may share connections, in the same order, in groups that may be on their way at once. */
function shared(batch: readonly FuzzRequest[], { pipelined, pipelinedBytes }: Recipient): FuzzRequest[][] {
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
