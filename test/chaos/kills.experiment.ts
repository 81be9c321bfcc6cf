import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApplianceResponse } from '../../src/control/messages.ts';
import { messageOf } from '../../src/core/failure.ts';
import { startRefresh } from '../reliability/fleet.ts';
import { TokenLoad, whoami } from '../reliability/load.ts';
import { eventually } from '../support/hub-process.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { ChaosHarness, type SentCredential } from './chaos-harness.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  mergeResults,
  prefixFigures,
} from './experiment.ts';

/** How a portal deals with a refresh token that comes again. */
interface Portal {
  readonly name: string;
  readonly flags: readonly string[];
  /**
   * It keeps one token good beside the newest: two lost answers in a row are one too many, by its own rules. So the hub
   * is only killed again when nothing is in doubt.
   */
  readonly oneLossInARow?: true;
  /** A lost answer costs the grant: then the hub must have been killed in the middle, and say what was lost. */
  readonly refusesReuse?: true;
}

const KEEPS_PREVIOUS: Portal = {
  name: 'previous token good',
  flags: ['--refresh-grace', '1'],
  oneLossInARow: true,
};
const SAME_AGAIN: Portal = { name: 'same answer again', flags: ['--refresh-grace-time', '1h'] };
const REFUSES: Portal = { name: 'reuse refused', flags: ['--refresh-grace', '0'], refusesReuse: true };

/** In the short form fewer, and the hub is killed in the middle of refreshes that a person asked for. */
const [LONG_GRANTS, SHORT_GRANTS] = [20, 4];
/** The short form ends with the kills that are wanted once every kind of event was met, and with so many at the most. */
const MAX_SHORT_KILLS = 20;
/** Appliances that are paired again and again meanwhile. */
const GUESTS = ['guest-1', 'guest-2'];
/** Seconds. */
const TOKEN_LIFETIME = 6;
/** ms between two requests of one appliance. */
const ASKING = 2000;
/** In seconds: everything that can recover has done so. */
const RECOVERY = 60;

export const experiment: Experiment = {
  name: 'Kills',
  promise:
    'Killed at any point of refreshes, pairings and start-up, the hub loses no grant of a portal that keeps the previous token good, and of one that refuses any reuse only what it could not know, which status says.',
  async run(scale, random) {
    const seeds = Array.from({ length: 3 }, () => random.whole(0, 999_999));
    const runs = scale.long
      ? [
          run(scale, KEEPS_PREVIOUS, 100, seeds[0]),
          run(scale, SAME_AGAIN, 200, seeds[1]),
          run(scale, REFUSES, 100, seeds[2]),
        ]
      : [run(scale, KEEPS_PREVIOUS, 2, seeds[0]), run(scale, REFUSES, 2, seeds[2])];
    return mergeResults(await Promise.all(runs));
  },
};

async function run(scale: ExperimentOptions, portal: Portal, wanted: number, seed = 0): Promise<ExperimentResult> {
  const names = Array.from({ length: scale.long ? LONG_GRANTS : SHORT_GRANTS }, (_, index) => `appliance-${index + 1}`);
  await using house = await ChaosHarness.start(
    [...names, ...GUESTS],
    ['--token-lifetime', `${TOKEN_LIFETIME}s`, '--seed', String(seed), ...portal.flags],
  );
  // An answer that takes its time is hit more often, before the portal has done what was asked and after it.
  const slow = { kind: 'delay', endpoint: 'token', times: null, probability: 0.5 };
  await house.portal.addFault({ ...slow, seconds: 0.15, commit: true });
  await house.portal.addFault({ ...slow, seconds: 0.15 });
  const fleet = await house.pairAppliances(names);
  const killing = new Killing(house, portal, names, new SeededRandom(seed));
  const load = await TokenLoad.start(house.hub, house.portal, fleet, ASKING);
  {
    await using _load = load;
    await using _guests = await killing.pairGuests();
    const goesOn = () =>
      killing.kills.length < wanted || (!scale.long && killing.kills.length < MAX_SHORT_KILLS && !killing.metAll(load));
    while (goesOn() && !scale.signal.aborted) {
      if (scale.long) await killing.atRandom();
      else await killing.inTheMiddle();
      scale.progress(`${portal.name}: ${killing.kills.length} kills`);
    }
  }
  return await killing.conclude(load);
}

/** One hub that is killed again and again. */
class Killing {
  /** When the hub was killed, in ms since 1970. */
  readonly kills: number[] = [];
  readonly broken: string[] = [];
  readonly #house: ChaosHarness;
  readonly #portal: Portal;
  readonly #names: readonly string[];
  readonly #random: SeededRandom;
  #inStartUp = 0;
  #inPairing = 0;
  #cutShort = 0;
  #lost = 0;
  #explained = 0;
  #pairings = 0;
  #pairingsUnderWay = 0;

  constructor(house: ChaosHarness, portal: Portal, names: readonly string[], random: SeededRandom) {
    this.#house = house;
    this.#portal = portal;
    this.#names = names;
    this.#random = random;
  }

  /** Kills the hub at some point of its life, starts it again and looks at what it says. */
  async atRandom(): Promise<void> {
    await sleep(1500 * this.#random.fraction());
    await this.#killAtWork();
    if (this.#random.fraction() < 0.3) await this.#killInStartUp();
    await this.#startAgain(this.#portal.oneLossInARow === true);
  }

  /** Kills the hub while every appliance is being refreshed, and while it starts if it never was. */
  async inTheMiddle(): Promise<void> {
    for (const name of this.#names) startRefresh(this.#house.hub, name);
    await sleep(300 * this.#random.fraction());
    await this.#killAtWork();
    if (this.#inStartUp === 0) await this.#killInStartUp();
    await this.#startAgain(true);
  }

  /** Whether each kind of event has happened. */
  metAll({ handOuts }: TokenLoad): boolean {
    const counts = [this.#inStartUp, this.#inPairing, this.#cutShort, this.#pairings, handOuts.length];
    return counts.every((count) => count > 0) && (this.#portal.refusesReuse === undefined || this.#lost > 0);
  }

  /** Goes on pairing appliances, through whatever befalls the hub, until it is disposed of. */
  async pairGuests(): Promise<AsyncDisposable> {
    const stop = new AbortController();
    const { hub } = this.#house;
    await Promise.all(GUESTS.map((name) => hub.addAppliance(name, 'Monitoring')));
    const loops = GUESTS.map(async (name) => {
      while (!stop.signal.aborted) {
        // A hub that is down answers nobody; a link that was lost with it is replaced by the next.
        this.#pairingsUnderWay += 1;
        const paired = await this.#house.pair(name).catch(() => false);
        this.#pairingsUnderWay -= 1;
        if (paired !== false) this.#pairings += 1;
        await sleep(300);
      }
    });
    return {
      async [Symbol.asyncDispose]() {
        stop.abort();
        await Promise.all(loops);
      },
    };
  }

  async conclude({ handOuts, refused }: TokenLoad): Promise<ExperimentResult> {
    const { name, refusesReuse } = this.#portal;
    await this.#judge(RECOVERY);
    for (const appliance of this.#names) await this.#prove(appliance);
    for (const guest of GUESTS) await this.#pairAgain(guest);
    const codes = new Set<string>();
    for (const { token } of await this.#house.sends('authorization_code')) {
      if (codes.has(token)) this.broken.push(`${name}: a code was sent twice`);
      codes.add(token);
    }
    if (this.#lost > 0 && refusesReuse === undefined) this.broken.push(`${name}: ${this.#lost} grants lost`);
    if (refused.length > 0)
      this.broken.push(`${name}: ${refused.length} tokens were handed out that the portal refused`);
    const figures = prefixFigures(name, {
      kills: this.kills.length,
      'kills in start-up': this.#inStartUp,
      'kills while an appliance was being paired': this.#inPairing,
      'refreshes cut short': this.#cutShort,
      'hand-outs meanwhile': handOuts.length,
      'pairings meanwhile': this.#pairings,
      'grants lost': refusesReuse
        ? `${this.#lost}, ${this.#explained} of them in a kill, and said so`
        : `${this.#lost} of ${this.#names.length}`,
    });
    return { figures, broken: this.broken };
  }

  async #kill(): Promise<void> {
    await this.#house.hub.kill('SIGKILL');
    this.kills.push(Date.now());
  }

  async #killAtWork(): Promise<void> {
    if (this.#pairingsUnderWay > 0) this.#inPairing += 1;
    await this.#kill();
  }

  async #killInStartUp(): Promise<void> {
    const starting = this.#house.hub.launch().then(
      () => true,
      () => false,
    );
    await Promise.race([sleep(600 * this.#random.fraction()), starting]);
    await this.#kill();
    if (!(await starting)) this.#inStartUp += 1;
  }

  /** @param untilSettled looks at the grants only when none is in doubt any more */
  async #startAgain(untilSettled: boolean): Promise<void> {
    const { hub } = this.#house;
    await hub.launch();
    // By the log: on a busy machine the retry is over before anybody can ask.
    this.#cutShort += (await readFile(hub.log, 'utf8')).split('"refresh_interrupted"').length - 1;
    await this.#judge(untilSettled ? 20 : null);
  }

  /** Looks at every grant. @param settled in seconds: until then no grant may be in doubt any more; null for at once */
  async #judge(settled: number | null): Promise<void> {
    await this.#house.collectRequests();
    if (settled !== null) await this.#recovered(settled);
    for (const status of await this.#house.statuses()) {
      if (!this.#names.includes(status.name) || status.state === 'active' || status.state === 'retrying') continue;
      this.#lost += 1;
      if (this.#portal.refusesReuse) await this.#explain(status);
      else this.broken.push(`${this.#portal.name}: ${status.name} is ${status.state}: ${status.problem?.message}`);
      await this.#pairAgain(status.name);
    }
  }

  async #pairAgain(name: string): Promise<void> {
    await this.#house.pair(name).catch((error: unknown) => {
      this.broken.push(`${this.#portal.name}: ${name} can't be paired: ${messageOf(error)}`);
    });
  }

  /** Waits until no grant is in doubt, or what is has been refused. */
  async #recovered(seconds: number): Promise<void> {
    const settled = async () => !(await this.#house.statuses()).some(inDoubt);
    await eventually(settled, seconds).catch(() => {
      this.broken.push(`${this.#portal.name}: a doubt lasted for ${seconds} s`);
    });
  }

  /** The hub must have been killed between the first use of the token that was refused and the second, and say so. */
  async #explain({ name, state, problem }: ApplianceResponse): Promise<void> {
    const where = `${this.#portal.name}: ${name}`;
    const brokenBefore = this.broken.length;
    if (state !== 'needs_pairing') this.broken.push(`${where} is ${state}`);
    const lostAt = Date.parse(/^An answer was lost on (\S+),/.exec(problem?.message ?? '')?.[1] ?? '');
    if (Number.isNaN(lostAt)) {
      this.broken.push(`${where} does not say that an answer was lost, but: ${problem?.message}`);
    }
    const ids = (await this.#house.grants()).filter(({ user }) => user === name).map(({ id }) => id);
    const sends: readonly SentCredential[] = (await this.#house.sends('refresh_token')).filter(({ grant }) =>
      ids.includes(grant),
    );
    const refused = sends.findLast(({ status }) => status === 400);
    const before = sends.filter(({ token, at }) => token === refused?.token && at < (refused?.at ?? 0));
    const committed = before.some(({ successor }) => successor !== null);
    // From when the hub sent it: a busy portal may read a request when its sender has long been killed.
    const killed = this.kills.some((kill) => lostAt <= kill && kill <= (refused?.at ?? 0));
    if (!committed) this.broken.push(`${where} was refused a token that nothing had been given for`);
    if (!killed) this.broken.push(`${where} was refused a token that no kill had come to`);
    if (this.broken.length === brokenBefore) this.#explained += 1;
  }

  /** The grant that the hub holds is the one that the portal goes on with. */
  async #prove(name: string): Promise<void> {
    const { hub, portal } = this.#house;
    const where = `${this.#portal.name}: ${name}`;
    await hub.until(name, ({ state }) => state === 'active', RECOVERY).catch(() => undefined);
    const status = await hub.ask((control) => control.refresh(name));
    if (status.state !== 'active')
      return void this.broken.push(`${where} can't be refreshed: ${status.problem?.message}`);
    const { access_token } = await hub.ask((control) => control.token(name));
    if ((await whoami(portal, access_token)) !== 200) this.broken.push(`${where} has a token that the portal refuses`);
  }
}

function inDoubt({ problem }: ApplianceResponse): boolean {
  return problem?.code === 'answer_lost';
}
