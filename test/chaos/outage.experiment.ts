import type { SeededRandom } from '../support/seeded-random.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  InvariantChecks,
  mergeResults,
} from './experiment.ts';
import { runNetworkPartition } from './network-partition.ts';
import { OUTAGES, VirtualFleet } from './virtual-fleet.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LIFETIME = HOUR;
/** One refresh for each grant in so many ms is what a street does anyway. */
const USUAL = 0.8 * LIFETIME;
/** Over which rates are looked at, in ms. */
const WINDOW = 5 * MINUTE;

export const experiment: Experiment = {
  name: 'Outage',
  promise:
    'After a day without the portal every grant is fresh again by itself within one lifetime of a token; meanwhile less than one request in 30 s is made for it, and a street of hubs does not come back in one minute.',
  async run(scale, random) {
    return mergeResults(await Promise.all([street(scale, random), runNetworkPartition(scale)]));
  },
};

/** A day in virtual time, once for each kind of outage, and a power cut. */
async function street({ long, progress, signal }: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult> {
  await using street = await VirtualFleet.build(long ? 24 : 4, 3, random);
  const { time, attempts, grants } = street;
  const figures: Record<string, string | number> = { 'grants in the street': grants.length };
  const promises = new InvariantChecks();
  /** From here on nobody may be at the portal at more than three times the usual rate but who has an appliance waiting. */
  const watchReturn = async (what: string) => {
    const from = time.wall;
    let slowest = 0;
    for (let passed = MINUTE; passed <= LIFETIME; passed += MINUTE) {
      await time.pass(MINUTE);
      if (street.stale.length > 0) slowest = passed;
    }
    promises.expect(street.stale.length === 0, `${street.stale.length} grants were not fresh an hour after: ${what}`);
    const waited = new Set(grants.filter(({ asked }) => asked).map(({ id }) => id));
    const own = attempts.filter(({ grant, at }) => at >= from && !waited.has(grant)).map(({ at }) => at - from);
    const usual = (ms: number) => ((grants.length - waited.size) * ms) / USUAL;
    const first = own.filter((at) => at < MINUTE).length;
    const peak = Math.max(...own.map((start) => own.filter((at) => at >= start && at < start + WINDOW).length), 0);
    figures[`${what}: last one fresh after, min`] = slowest / MINUTE + 1;
    figures[`${what}: most in 5 min, times the usual`] = Math.round((10 * peak) / usual(WINDOW)) / 10;
    // By chance a handful of refreshes may lie close together, so that a few are granted on top.
    promises.expect(first <= 3 * usual(MINUTE) + 3, `in the first minute after: ${what}, ${first} hubs came back`);
    promises.expect(peak <= 3 * usual(WINDOW) + 4, `after: ${what}, ${peak} refreshes were made in five minutes`);
  };

  for (const outage of long ? OUTAGES : (['refused', '503'] as const)) {
    if (signal.aborted) break;
    const from = time.wall;
    // A portal that answers is asked again sooner, and it is seen sooner how often.
    const lasts = long || outage === 'refused' ? 24 * HOUR : 6 * HOUR;
    await street.setOutage(outage);
    await time.pass(lasts);
    const made = attempts.filter(({ at }) => at >= from);
    const most = Math.max(...grants.map(({ id }) => made.filter(({ grant }) => grant === id).length));
    const every = Math.round(lasts / 1000 / most);
    figures[`${outage}: requests a grant, at most one in, s`] = every;
    promises.expect(every >= 30, `with the portal ${outage} one grant made a request every ${every} s`);
    promises.expect(
      made.every(({ granted }) => !granted),
      `with the portal ${outage} there were answers`,
    );
    await street.setOutage(null);
    await watchReturn(outage);
    progress(
      `${outage}: a request every ${every} s, all fresh after ${figures[`${outage}: last one fresh after, min`]} min`,
    );
  }
  if (!signal.aborted) {
    await street.powerCut(3 * HOUR);
    await watchReturn('power cut');
    progress(`power cut: all fresh after ${figures['power cut: last one fresh after, min']} min`);
  }
  const { refreshTokensRepeated } = street.emulator.observations;
  promises.expect(refreshTokensRepeated === 0, `${refreshTokensRepeated} refresh tokens were sent twice`);
  promises.expect(
    street.emulator.grants().every(({ revoked }) => !revoked),
    'a grant was lost',
  );
  return { figures, broken: promises.broken };
}
