// Sends the requests of one part of a run, on several connections at a time, and hands over what came of each.
import { type Answer, type Dial, dropLeft, exchange } from './exchange.ts';
import type { Findings } from './findings.ts';
import type { Origin } from './plan.ts';
import type { FuzzRequest } from './requests.ts';

export interface Numbered {
  readonly number: number;
  readonly request: FuzzRequest;
}

/** A part of a run, and who judges it. */
export interface Part {
  /** Numbers of its requests: `end` is the first that is none of them. */
  readonly from: number;
  readonly end: number;
  /** Where requests go to, and on how many of them may be on their way at once on one connection. */
  readonly origins: readonly Origin[];
  readonly pipelined: number;
  /** Bytes that may be on their way at once on one connection. */
  readonly pipelinedBytes: number;
  readonly stopped: () => boolean;
  request(number: number): FuzzRequest;
  dial(first: Numbered): Dial;
  judge(one: Numbered, answer: Answer): void;
  /** A sound request, and why it got no answer. */
  unanswered(one: Numbered, how: string): void;
  /** After the answers of each connection. */
  settle(answered: readonly (readonly [one: Numbered, answer: Answer])[]): Promise<void>;
}

const LANES = 8;

/** Sends them all, unless there are enough problems by now. */
export async function sendPart(part: Part, findings: Findings): Promise<void> {
  let next = part.from;
  const send = async (batch: readonly Numbered[]) => {
    for (let rest = batch; rest.length > 0; ) {
      const [head] = rest;
      if (head === undefined) return;
      const requests = rest.map(({ request }) => request);
      const { got, closed, how } = await exchange(part.dial(head), requests);
      const answered = got.map((answer, index) => [rest[index] ?? head, answer] as const);
      for (const [one, answer] of answered) part.judge(one, answer);
      await part.settle(answered);
      const missing = rest[got.length];
      if (missing === undefined || !missing.request.sound) return;
      if (!closed) {
        part.unanswered(missing, how.replaceAll(/\d+\.\d+\.\d+\.\d+:\d+/g, 'it'));
        return;
      }
      rest = rest.slice(got.length);
    }
  };
  const lane = async () => {
    while (next < part.end && !findings.enough && !part.stopped()) {
      const batch: Numbered[] = [];
      for (; next < part.end && batch.length < part.pipelined; next += 1) {
        batch.push({ number: next, request: part.request(next) });
      }
      const together = batch.filter(({ request }) => request.pipelined);
      for (const origin of part.origins) {
        const there = together.filter(({ request }) => request.origin === origin);
        for (const some of byBytes(there, part.pipelinedBytes)) await send(some);
      }
      for (const alone of batch) if (!together.includes(alone)) await send([alone]);
      findings.sent += batch.length;
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  dropLeft();
}

/** The same in the same order, in groups of at most so many bytes, or of one. */
function byBytes(all: readonly Numbered[], most: number): Numbered[][] {
  const groups: Numbered[][] = [];
  let left = 0;
  for (const one of all) {
    const { length } = one.request.bytes;
    if (groups.length === 0 || length > left) {
      groups.push([]);
      left = most;
    }
    groups.at(-1)?.push(one);
    left -= length;
  }
  return groups;
}
