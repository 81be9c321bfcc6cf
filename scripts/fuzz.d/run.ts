// Sends the requests of the fuzz and watches what becomes of the emulator.
import { bout, shown } from './bouts.ts';
import { type Answer, exchange } from './exchange.ts';
import { Learned } from './facts.ts';
import { Findings, type Memory, statusLine } from './findings.ts';
import { begin, changeSettings, dialOf, goodFlow, settings, type Target } from './flows.ts';
import { type Numbered, sendPart } from './lanes.ts';
import { Operations } from './operations.ts';
import { emulatorPlanner } from './plans.ts';
import { type FuzzRequest, requestOf } from './requests.ts';

/** How a run goes. */
export interface Run {
  readonly requests: number;
  readonly seed: number;
  readonly memory: () => Promise<Memory>;
  /** Told of progress and of problems. */
  readonly said?: (line: string) => void;
  /** Ends the run before its time. */
  readonly stopped?: () => boolean;
}

/** Requests between two good flows. */
export const PART = 5_000;
/** Requests on their way at once on one connection. */
const PIPELINED = 48;
/** Lines of progress. */
const LINES = 20;

/** Sends that many requests; between its parts a good flow must succeed. */
export async function fuzz(target: Target, run: Run): Promise<Findings> {
  const { requests, seed, said = () => {}, stopped = () => false } = run;
  const description = await (await fetch(`${target.baseUrl}/_emulator/openapi.json`)).json();
  const findings = new Findings(new Operations(description), said);
  const standing = await settings(target);
  const began = performance.now();
  let lines = 1;
  for (let from = 0; from < requests && !findings.enough && !stopped(); from += PART) {
    const end = Math.min(requests, from + PART);
    try {
      await part(target, { from, end, seed, standing, stopped }, findings);
    } catch (error) {
      findings.problem('the good flow failed', `seed ${seed}, after request ${end - 1}: ${String(error)}`);
      if (!(await serves(target))) break;
    }
    const memory = await run.memory();
    findings.memory.push(memory);
    if (end >= (lines * requests) / LINES) {
      lines = Math.floor((end * LINES) / requests) + 1;
      const rate = (1000 * end) / (performance.now() - began);
      const share = `${Math.round((100 * end) / requests)} %`.padStart(5);
      said(`${share}  ${end} requests, ${rate.toFixed(0)}/s, ${memoryText(memory)}; ${statusLine(findings.statuses)}`);
    }
  }
  return findings;
}

interface Part {
  readonly from: number;
  readonly end: number;
  readonly seed: number;
  /** The settings from the start. */
  readonly standing: unknown;
  readonly stopped: () => boolean;
}

async function part(target: Target, { from, end, seed, standing, stopped }: Part, findings: Findings): Promise<void> {
  const { facts: first, secrets } = await begin(target);
  const facts = new Learned(first);
  const planner = emulatorPlanner(facts);
  const sending = {
    from,
    end,
    origins: ['base', 'frontend'] as const,
    pipelined: PIPELINED,
    pipelinedBytes: Number.POSITIVE_INFINITY,
    stopped,
    request: (number: number) => requestOf(seed, number, planner),
    dial: ({ request }: Numbered) => dialOf(target, request),
    judge({ number, request }: Numbered, { status, text }: Answer) {
      findings.status(status);
      const operation = findings.operations.count(request, status);
      const problem = (what: string) => findings.problem(`${operation} ${what}`, repeated(seed, number, request, text));
      if (status >= 500) problem(`answered ${status}`);
      if (secrets.some((secret) => text.includes(secret))) problem('tells a secret of the victim');
      if (status < 400) facts.learn(request.path, text);
    },
    unanswered: ({ number, request }: Numbered, how: string) =>
      findings.problem(`no answer: ${how}`, repeated(seed, number, request, '')),
    async settle(answered: readonly (readonly [Numbered, Answer])[]) {
      // Else one limit of the rate would answer all that follows.
      const changed = answered.some(([{ request }, { status }]) => status === 200 && request.method === 'PATCH');
      if (changed) await changeSettings(target, standing);
    },
  };
  await sendPart(sending, findings);
  await bout(target, seed, from / PART, facts, findings);
  await goodFlow(target);
}

/** What somebody needs to see a problem again. */
function repeated(seed: number, number: number, request: FuzzRequest, answer: string): string {
  return [
    `seed ${seed}, request ${number} to the ${request.origin} origin; alone: ./scripts/fuzz --seed ${seed} --only ${number}; ` +
      `with all before it: ./scripts/fuzz --seed ${seed} --requests ${number + 1}`,
    `request: ${shown(request)}`,
    `answer: ${JSON.stringify(answer.slice(0, 500))}`,
  ].join('\n');
}

/** Sends one request of a run after good flows, as a run would, and gives what came of it. */
export async function only(target: Target, seed: number, number: number): Promise<string> {
  const { facts } = await begin(target);
  const request = requestOf(seed, number, emulatorPlanner(new Learned(facts)));
  const { got, how } = await exchange(dialOf(target, request), [request]);
  return `request: ${shown(request)}\nanswer: ${JSON.stringify(got[0]?.text ?? how)}`;
}

/** Whether the emulator still answers anything. */
async function serves(target: Target): Promise<boolean> {
  return await fetch(`${target.baseUrl}/_emulator/clock`).then(
    ({ status }) => status === 200,
    () => false,
  );
}

export function memoryText({ resident, heap }: Memory): string {
  return `${resident.toFixed(0)} MB resident${heap === null ? '' : `, heap ${heap.toFixed(1)} MB`}`;
}
