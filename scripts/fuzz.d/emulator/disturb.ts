// Between the parts of a run: what would spoil the requests of a part has its turn here, one thing at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { Problem } from '../batch.ts';
import { exchange } from '../exchange.ts';
import { type FuzzRequest, good, JSON_TYPE, shown } from '../requests.ts';
import type { Sending } from '../run.ts';
import { fault, GOOD_SETTINGS } from './api-plans.ts';
import { dialOf, reset, type Target } from './flows.ts';
import type { Facts } from './values.ts';

/** Faults in one turn: all kinds have had theirs after four. */
const FAULTS = 4;
/** Requests that meet a fault or a setting. */
const REQUESTS = 24;
/** Milliseconds that each of them waits for an answer. */
const PATIENCE = 40;

/**
 * Some faults, a changed setting and an advance of the clock, one after the other, and requests that meet it.
 * @throws Problem for a 5xx that the fault did not ask for; a missing answer is none
 */
export async function disturb(
  target: Target,
  { clientId }: Facts,
  requests: fc.Arbitrary<FuzzRequest>,
  { turn, seed, count }: Pick<Sending, 'count'> & { readonly turn: number; readonly seed: number },
): Promise<void> {
  const [setting, values] = GOOD_SETTINGS[turn % GOOD_SETTINGS.length] ?? ['', []];
  const disturbances = fc.tuple(
    ...Array.from({ length: FAULTS }, (_, index) => call('POST', 'faults', fault(clientId, FAULTS * turn + index))),
    call('PATCH', 'settings', fc.record({ [setting]: fc.constantFrom(...values) })),
    call('POST', 'clock', fc.record({ advance: fc.constantFrom(60, 86_400, 3e9, 4e9) })),
  );
  for (const { request, status } of fc.sample(disturbances, { seed, numRuns: 1 }).flat()) {
    const taken = await exchange(dialOf(target, request), [request], 2_000);
    count(request, taken.got[0]?.status);
    const meet = async (one: FuzzRequest) => {
      const { got } = await exchange(dialOf(target, one), [one], PATIENCE);
      const [answer] = got;
      count(one, answer?.status);
      if (answer === undefined || answer.status < 500 || answer.status === status) return;
      const how = `after ${shown(request)}: ${answer.text.slice(0, 500)}\n${shown(one)}`;
      throw new Problem(`answered ${answer.status}, which was not asked for`, `in turn ${turn}, ${how}`);
    };
    await Promise.all(fc.sample(requests, { seed, numRuns: REQUESTS }).map(meet));
    await recovered(target);
  }
}

/** A call of the emulator's API, and the status that it asks for. */
function call(method: string, name: string, json: fc.Arbitrary<Readonly<Record<string, unknown>>>) {
  return json.map((body) => ({
    request: good({
      origin: 'base',
      method,
      path: `/_emulator/${name}`,
      heads: [JSON_TYPE],
      body: JSON.stringify(body),
    }),
    status: body['status'],
  }));
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
