// Between the parts of a run: what would spoil the requests of a part has its turn here, one thing at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { GOOD_SETTINGS } from './api-plans.ts';
import { Dice } from './dice.ts';
import { exchange } from './exchange.ts';
import type { Facts } from './facts.ts';
import { fault } from './fault-bodies.ts';
import type { Findings } from './findings.ts';
import { dialOf, reset, type Target } from './flows.ts';
import { emulatorPlanner } from './plans.ts';
import { type FuzzRequest, requestOf } from './requests.ts';

/** Faults in one turn: all kinds have had theirs after four. */
const FAULTS = 4;
/** Requests that meet a fault or a setting. */
const REQUESTS = 24;
/** Milliseconds that each of them waits for an answer. */
const PATIENCE = 40;

/**
 * Some faults, a changed setting and an advance of the clock, one after the other, and requests that meet it. A 5xx is a problem
 * only where the fault did not ask for that very one; a missing answer is none.
 */
export async function bout(
  target: Target,
  seed: number,
  turn: number,
  facts: Facts,
  findings: Findings,
): Promise<void> {
  const planner = emulatorPlanner(facts);
  const dice = new Dice(Math.imul(seed + 3, 0x27d4eb2f) ^ turn);
  const asked = Array.from({ length: FAULTS }, (_, index) => fault(dice, facts.clientId, FAULTS * turn + index));
  const [setting, values] = GOOD_SETTINGS[turn % GOOD_SETTINGS.length] ?? ['', []];
  const own: readonly (readonly [method: string, name: string, body: object])[] = [
    ...asked.map((one) => ['POST', 'faults', one] as const),
    ['PATCH', 'settings', { [setting]: dice.of<unknown>(values, null) }],
    ['POST', 'clock', { advance: dice.of([60, 86_400, 3e9, 4e9], 0) }],
  ];
  for (const [method, name, body] of own) {
    const path = `/_emulator/${name}`;
    const text = JSON.stringify(body);
    const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${text.length}`;
    const request = { ...USED, origin: 'base', method, path, bytes: `${head}\r\n\r\n${text}` } as const;
    const first = await exchange(dialOf(target, request), [request], 2_000);
    count(findings, request, first.got[0]?.status ?? 0);
    const met = Array.from({ length: REQUESTS }, (_, index) =>
      requestOf(seed, (turn + 1) * 1_000_003 + index, planner),
    );
    await Promise.all(
      met.map(async (one) => {
        const { got } = await exchange(dialOf(target, one), [one], PATIENCE);
        const [answer] = got;
        if (answer === undefined) return;
        count(findings, one, answer.status);
        if (answer.status >= 500 && answer.status !== statusAsked(body)) {
          const how = `in turn ${turn}, after ${method} ${path} ${text}: ${answer.text.slice(0, 500)}\n${shown(one)}`;
          findings.problem(`answered ${answer.status}, which was not asked for`, `seed ${seed}, ${how}`);
        }
      }),
    );
    await recovered(target);
  }
}

const USED = { sound: true, pipelined: false, pieces: 1, given: 'up' } as const;

function statusAsked(body: object): unknown {
  return 'status' in body ? body.status : null;
}

/** Statuses are left out: they are those that the faults ask for. */
function count(findings: Findings, request: FuzzRequest, status: number): void {
  findings.sent += 1;
  findings.operations.count(request, status);
}

/** As the emulator takes it, readable. */
export function shown({ bytes }: FuzzRequest): string {
  return JSON.stringify(bytes.slice(0, 2000));
}

/** Takes everything back. An origin that went down with its connections may need a moment. */
async function recovered(target: Target): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await reset(target);
    } catch (error) {
      if (tries === 100) throw error;
      await sleep(20);
    }
  }
}
