import type { SeededRandom } from '../support/seeded-random.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  InvariantChecks,
  mergeResults,
} from './experiment.ts';
import { OUTAGES, PACED } from './fleet-routes.ts';
import { runNetworkPartition } from './network-partition.ts';
import { VirtualFleet } from './virtual-fleet.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LIFETIME = HOUR;
/** The usual interval of a grant's refreshes, in ms. */
const USUAL = 0.8 * LIFETIME;
/** The period over which rates are measured, in ms. */
const WINDOW = 5 * MINUTE;

export const experiment: Experiment = {
  name: 'Outage',
  promise:
    'After a day without the portal every grant is refreshed automatically within one token lifetime. During the outage the hub sends less than one request in 30 s for each grant, and a fleet of hubs does not come back within one minute.',
  async run(scale, random) {
    return mergeResults(await Promise.all([simulateFleet(scale, random), runNetworkPartition(scale)]));
  },
};

/** A day in virtual time for each kind of outage, in the short form some hours, and a power cut. */
async function simulateFleet(
  { long, progress, signal }: ExperimentOptions,
  random: SeededRandom,
): Promise<ExperimentResult> {
  await using fleet = await VirtualFleet.build(long ? 24 : 3, 3, random);
  const { time, attempts, grants } = fleet;
  const figures: Record<string, string | number> = {
    'grants in the fleet': grants.length,
    'grants in the fleet at an oauth2 portal': grants.filter(({ kind }) => kind !== 'helper').length,
  };
  const promises = new InvariantChecks();
  /** Checks that from now on the hubs' own refreshes do not exceed three times the usual rate. */
  const watchReturn = async (what: string) => {
    const from = time.wall;
    let slowest = 0;
    for (let passed = MINUTE; passed <= LIFETIME; passed += MINUTE) {
      await time.pass(MINUTE);
      if (fleet.stale.length > 0) slowest = passed;
    }
    promises.expect(fleet.stale.length === 0, `${fleet.stale.length} grants were stale an hour after: ${what}`);
    const waited = new Set(grants.filter(({ asked }) => asked).map(({ id }) => id));
    const own = attempts.filter(({ grant, at }) => at >= from && !waited.has(grant)).map(({ at }) => at - from);
    const usual = (ms: number) => ((grants.length - waited.size) * ms) / USUAL;
    const first = own.filter((at) => at < MINUTE).length;
    const peak = Math.max(...own.map((start) => own.filter((at) => at >= start && at < start + WINDOW).length), 0);
    figures[`${what}: all fresh after, min`] = slowest / MINUTE + 1;
    figures[`${what}: peak of 5 min, × usual`] = Math.round((10 * peak) / usual(WINDOW)) / 10;
    // A few refreshes may be close together by chance, so the limits have a margin.
    promises.expect(first <= 3 * usual(MINUTE) + 3, `in the first minute after: ${what}, ${first} hubs came back`);
    promises.expect(peak <= 3 * usual(WINDOW) + 4, `after: ${what}, there were ${peak} refreshes in five minutes`);
  };

  for (const outage of long ? OUTAGES : (['refused', '503', 'HTML 403'] as const)) {
    if (signal.aborted) break;
    const from = time.wall;
    // If the portal responds, hubs retry sooner, so that a shorter outage shows the rate.
    const duration = long ? 24 * HOUR : outage === 'refused' ? 6 * HOUR : 3 * HOUR;
    await fleet.setOutage(outage);
    await time.pass(duration);
    const made = attempts.filter(({ at }) => at >= from);
    const most = Math.max(...grants.map(({ id }) => made.filter(({ grant }) => grant === id).length));
    const every = Math.round(duration / 1000 / most);
    figures[`${outage}: requests per grant, at most one in, s`] = every;
    promises.expect(every >= 30, `with the portal ${outage} one grant made a request every ${every} s`);
    promises.expect(
      made.every(({ granted }) => !granted),
      `with the portal ${outage} a refresh succeeded`,
    );
    await fleet.setOutage(null);
    await watchReturn(outage);
    progress(
      `${outage}: a request every ${every} s, all fresh after ${figures[`${outage}: all fresh after, min`]} min`,
    );
  }
  if (!signal.aborted) {
    await fleet.powerCut(3 * HOUR);
    await watchReturn('power cut');
    progress(`power cut: all fresh after ${figures['power cut: all fresh after, min']} min`);
  }
  figures['refreshes with a compressed answer'] = attempts.filter(({ granted }) => granted).length;
  const paced = new Set(grants.flatMap(({ id, kind }) => (kind === PACED.kind ? id : [])));
  const pacedAt = attempts.filter(({ grant, granted }) => granted && paced.has(grant)).map(({ at }) => at);
  const shortest = Math.min(...pacedAt.slice(1).map((at, index) => at - (pacedAt[index] ?? 0)));
  figures['waits for a turn at a paced portal'] = fleet.waits;
  figures['shortest interval of two refreshes at a paced portal, s'] = Math.round(shortest / 1000);
  promises.expect(shortest >= PACED.interval, `a paced portal got two refreshes within ${shortest} ms`);
  const { refreshTokensRepeated } = fleet.emulator.observations;
  promises.expect(refreshTokensRepeated === 0, `${refreshTokensRepeated} refresh tokens were sent twice`);
  promises.expect(
    fleet.emulator.grants().every(({ revoked }) => !revoked),
    'a grant was lost',
  );
  return { figures, broken: promises.broken };
}
