// Sends the requests of the fuzz to a hub and watches what becomes of it.
import { request as fetchOne } from 'undici';
import { shown } from '../bouts.ts';
import { type Answer, exchange } from '../exchange.ts';
import { Findings, statusLine } from '../findings.ts';
import { type Numbered, sendPart } from '../lanes.ts';
import { Operations } from '../operations.ts';
import { requestOf } from '../requests.ts';
import { memoryText, PART, type Run } from '../run.ts';
import { hubBout } from './bouts.ts';
import { hubDial } from './dial.ts';
import type { Credentials } from './facts.ts';
import { LearnedOfHub } from './facts.ts';
import { beginHub, goodHubFlow, introduceWaiting, tidy } from './flows.ts';
import type { FuzzedHome } from './home.ts';
import { wrongOf } from './judge.ts';
import { person } from './person.ts';
import { hubPlanner } from './plans.ts';
import { PortalWatch } from './portal-watch.ts';
import { witness } from './witness.ts';

/** Requests on their way at once on one connection: the hub cuts off who sends more than 32. */
const PIPELINED = 24;
/** One TLS record: Node takes what comes behind it for no HTTP where answers wait to be read (HPE_PAUSED). */
const PIPELINED_BYTES = 16_000;
/** Lines of progress. */
const LINES = 20;
/** Requests that meet the portal's trouble between two parts; their numbers follow those of the longest run. */
const MET = 100;
/** The hub waits for the portal as long as it may, so that only some parts have trouble. */
const TROUBLE_EVERY = 5;
const MET_FROM = 1_000_000_000;
/** Good flows that fail one after the other: nothing that comes later would tell more. */
const HOPELESS = 3;
const ORIGINS = ['https', 'http'] as const;

/** Sends that many requests; between its parts good appliances must be served. */
export async function fuzzHub(home: FuzzedHome, run: Run): Promise<Findings> {
  const { requests, seed, said = () => {}, stopped = () => false } = run;
  const findings = new Findings(new Operations(await description(home)), said);
  const waiting = await introduceWaiting(home);
  const watch = new PortalWatch(home);
  const began = performance.now();
  let lines = 1;
  let failedInRow = 0;
  for (let from = 0; from < requests && !findings.enough && !stopped(); from += PART) {
    const end = Math.min(requests, from + PART);
    const where = `seed ${seed}, before request ${end}`;
    try {
      await part(home, waiting, { from, end, seed, stopped }, findings);
      failedInRow = 0;
    } catch (error) {
      findings.problem('the good flow failed', `${where}: ${String(error)}`);
      failedInRow += 1;
      if (failedInRow === HOPELESS || !(await serves(home))) break;
    }
    watch.judge(findings, where);
    const memory = await home.memory();
    findings.memory.push(memory);
    if (end >= (lines * requests) / LINES) {
      lines = Math.floor((end * LINES) / requests) + 1;
      const rate = (1000 * end) / (performance.now() - began);
      const share = `${Math.round((100 * end) / requests)} %`.padStart(5);
      said(`${share}  ${end} requests, ${rate.toFixed(0)}/s, ${memoryText(memory)}; ${statusLine(findings.statuses)}`);
    }
  }
  said(`the portal got ${watch.all()} requests: ${JSON.stringify(home.portalRequests())}`);
  return findings;
}

async function description({ agent, ports }: FuzzedHome): Promise<unknown> {
  const { body } = await fetchOne(`https://127.0.0.1:${ports.httpsPort}/openapi.json`, { dispatcher: agent });
  return body.json();
}

async function serves({ agent, ports }: FuzzedHome): Promise<boolean> {
  return fetchOne(`https://127.0.0.1:${ports.httpsPort}/ca.pem`, { dispatcher: agent }).then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode === 200;
    },
    () => false,
  );
}

interface Part {
  readonly from: number;
  readonly end: number;
  readonly seed: number;
  readonly stopped: () => boolean;
}

async function part(
  home: FuzzedHome,
  waiting: Credentials,
  { from, end, seed, stopped }: Part,
  findings: Findings,
): Promise<void> {
  const { facts: first, secrets, served } = await beginHub(home, waiting);
  const facts = new LearnedOfHub(first);
  const planner = hubPlanner(facts);
  const sending = {
    from,
    end,
    origins: ORIGINS,
    pipelined: PIPELINED,
    pipelinedBytes: PIPELINED_BYTES,
    stopped,
    request: (number: number) => requestOf(seed, number, planner),
    dial: (one: Numbered) => hubDial(home.ports, seed, one),
    judge(one: Numbered, answer: Answer) {
      findings.status(answer.status);
      const operation = findings.operations.count(one.request, answer.status);
      for (const what of wrongOf(operation, one.request, answer, secrets)) {
        findings.problem(`${operation} ${what}`, repeated(seed, one, answer.text));
      }
      if (answer.status < 400) facts.learn(one.request, answer.text);
    },
    unanswered: (one: Numbered, how: string) => findings.problem(`no answer: ${how}`, repeated(seed, one, '')),
    settle: async () => {},
  };
  const where = `seed ${seed}, in the part from request ${from}`;
  let over = false;
  const logins = person(home, facts, () => over).catch((error: unknown) =>
    findings.problem('a person was not answered', `${where}: ${String(error)}`),
  );
  const watching = witness(home, served, () => over, findings, where);
  await sendPart(sending, findings).finally(() => {
    over = true;
  });
  await logins;
  if ((await watching) === 0) findings.problem('no honest appliance was served', where);
  if (((from + PART) / PART) % TROUBLE_EVERY === 0) {
    const turn = (from + PART) / PART / TROUBLE_EVERY - 1;
    const numbers = MET_FROM + turn * MET;
    await hubBout(home, turn, findings, () => sendPart({ ...sending, from: numbers, end: numbers + MET }, findings));
  }
  await goodHubFlow(home, waiting);
  await tidy(home);
}

/** What somebody needs to see a problem again. */
function repeated(seed: number, { number, request }: Numbered, answer: string): string {
  return [
    `seed ${seed}, request ${number} to the ${request.origin} port; alone: ./scripts/fuzz --target hub --seed ${seed} --only ${number}; ` +
      `with all before it: ./scripts/fuzz --target hub --seed ${seed} --requests ${number + 1}`,
    `request: ${shown(request)}`,
    `answer: ${JSON.stringify(answer.slice(0, 800))}`,
  ].join('\n');
}

/** Sends one request of a run after good flows, as a run would, and gives what came of it. */
export async function onlyToHub(home: FuzzedHome, seed: number, number: number): Promise<string> {
  const { facts } = await beginHub(home, await introduceWaiting(home));
  const request = requestOf(seed, number, hubPlanner(new LearnedOfHub(facts)));
  const { got, how } = await exchange(hubDial(home.ports, seed, { number, request }), [request]);
  return `request: ${shown(request)}\nanswer: ${JSON.stringify(got[0]?.text ?? how)}`;
}
