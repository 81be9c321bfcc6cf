// Sends a batch of requests on several parallel connections, and checks each response.
import { type Dial, exchangeRequests, type RawResponse } from './exchange.ts';
import { type FuzzRequest, printableRequest } from './requests.ts';

/** A problem that the fuzz found. */
export class FuzzProblem extends Error {
  override readonly name = 'Problem';
  /** A text that is different for each kind of problem. */
  readonly kind: string;

  constructor(kind: string, details: string) {
    super(`${kind}\n${details}`);
    this.kind = kind;
  }
}

/** The destination of requests, and the checks of their responses. */
export interface FuzzTarget {
  /** The maximum of pipelined requests, and of their bytes, on one connection. */
  readonly pipelined: number;
  readonly pipelinedBytes: number;
  dial(first: FuzzRequest): Dial;
  /** What is wrong with a response; the text is different for each kind of problem. */
  judge(request: FuzzRequest, answer: RawResponse): readonly string[];
  /** Called after the responses of each connection. */
  settle(answered: readonly (readonly [request: FuzzRequest, answer: RawResponse])[]): Promise<void>;
}

/** Connections for pipelined requests, and as many for the others. */
const PARALLEL_CONNECTIONS = 8;

/** Sends all requests, or stops at the first problem. @returns it, or null */
export async function sendBatch(batch: readonly FuzzRequest[], recipient: FuzzTarget): Promise<FuzzProblem | null> {
  let problem: FuzzProblem | null = null;
  const wrong = (kind: string, request: FuzzRequest, answer: string) => {
    const details = `request to ${request.origin}: ${printableRequest(request)}\nresponse: ${JSON.stringify(answer.slice(0, 800))}`;
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
      if (!closed) return wrong(`no response: ${how.replaceAll(/\d+\.\d+\.\d+\.\d+:\d+/g, 'it')}`, missing, '');
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

/** Groups the requests that may be pipelined, in order. */
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
