import { setTimeout as sleep } from 'node:timers/promises';
import type { ApplianceStatus } from '../../src/core/administration.ts';
import { messageOf } from '../../src/core/failure.ts';
import { ask, until } from '../reliability/fleet.ts';
import { Load, whoami } from '../reliability/load.ts';
import { eventually } from '../support/hub-process.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import type { Experiment, Finding, Scale } from './experiment.ts';
import { Household, type Send } from './household.ts';

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

const GRANTS = Array.from({ length: 20 }, (_, index) => `appliance-${index + 1}`);
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
      : [
          run(scale, KEEPS_PREVIOUS, 10, seeds[0]),
          run(scale, SAME_AGAIN, 20, seeds[1]),
          run(scale, REFUSES, 8, seeds[2]),
        ];
    const findings = await Promise.all(runs);
    return {
      figures: Object.assign({}, ...findings.map(({ figures }) => figures)),
      broken: findings.flatMap(({ broken }) => broken),
    };
  },
};

async function run(scale: Scale, portal: Portal, wanted: number, seed = 0): Promise<Finding> {
  await using house = await Household.start(
    [...GRANTS, ...GUESTS],
    ['--token-lifetime', `${TOKEN_LIFETIME}s`, '--seed', String(seed), ...portal.flags],
  );
  // An answer that takes its time is hit more often, before the portal has done what was asked and after it.
  const slow = { kind: 'delay', endpoint: 'token', times: null, probability: 0.5 };
  await house.portal.addFault({ ...slow, seconds: 0.15, commit: true });
  await house.portal.addFault({ ...slow, seconds: 0.15 });
  const fleet = await house.settle(GRANTS);
  const killing = new Killing(house, portal, new SeededRandom(seed));
  const load = await Load.start(house.hub, house.portal, fleet, ASKING);
  {
    await using _load = load;
    await using _guests = await killing.pairGuests();
    while (killing.kills.length < wanted && !scale.signal.aborted) {
      await killing.once();
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
  readonly #house: Household;
  readonly #portal: Portal;
  readonly #random: SeededRandom;
  #inStartUp = 0;
  #inDoubt = 0;
  #lost = 0;
  #explained = 0;
  #pairings = 0;

  constructor(house: Household, portal: Portal, random: SeededRandom) {
    this.#house = house;
    this.#portal = portal;
    this.#random = random;
  }

  /** Kills the hub at some point of its life, starts it again and looks at what it says. */
  async once(): Promise<void> {
    const { hub } = this.#house;
    await sleep(1500 * this.#random.fraction());
    await this.#kill();
    // In the middle of a start-up, which takes a second or so.
    if (this.#random.fraction() < 0.3) {
      const starting = hub.launch().catch(() => undefined);
      await Promise.race([sleep(1000 * this.#random.fraction()), starting]);
      await this.#kill();
      await starting;
      this.#inStartUp += 1;
    }
    await hub.launch();
    await this.#judge();
  }

  /** Goes on pairing appliances, through whatever befalls the hub, until it is disposed of. */
  async pairGuests(): Promise<AsyncDisposable> {
    const stop = new AbortController();
    const { hub } = this.#house;
    await Promise.all(GUESTS.map((name) => ask(hub, (control) => control.addAppliance(name, 'Monitoring', null))));
    const loops = GUESTS.map(async (name) => {
      while (!stop.signal.aborted) {
        // A hub that is down answers nobody; a link that was lost with it is replaced by the next.
        const paired = await this.#house.pair(name).catch(() => false);
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

  async conclude({ handOuts, refused }: Load): Promise<Finding> {
    const { name, refusesReuse } = this.#portal;
    await this.#recovered(RECOVERY);
    await this.#judge();
    for (const appliance of GRANTS) await this.#prove(appliance);
    for (const guest of GUESTS) await this.#pairAgain(guest);
    const codes = new Set<string>();
    for (const { token } of await this.#house.sends('authorization_code')) {
      if (codes.has(token)) this.broken.push(`${name}: a code was sent twice`);
      codes.add(token);
    }
    if (this.#lost > 0 && refusesReuse === undefined) this.broken.push(`${name}: ${this.#lost} grants lost`);
    if (refused.length > 0)
      this.broken.push(`${name}: ${refused.length} tokens were handed out that the portal refused`);
    const figures = {
      kills: this.kills.length,
      'kills in start-up': this.#inStartUp,
      'grants in doubt after a start': this.#inDoubt,
      'hand-outs meanwhile': handOuts.length,
      'pairings meanwhile': this.#pairings,
      'grants lost': refusesReuse
        ? `${this.#lost}, ${this.#explained} of them in a kill, and said so`
        : `${this.#lost} of ${GRANTS.length}`,
    };
    return {
      figures: Object.fromEntries(Object.entries(figures).map(([key, value]) => [`${name}: ${key}`, value])),
      broken: this.broken,
    };
  }

  async #kill(): Promise<void> {
    await this.#house.hub.kill('SIGKILL');
    this.kills.push(Date.now());
  }

  /** Looks at every grant right after a start; at a portal that keeps one token good, until none is in doubt. */
  async #judge(): Promise<void> {
    const statuses = await this.#house.statuses();
    this.#inDoubt += statuses.filter(inDoubt).length;
    await this.#house.keepLog();
    if (this.#portal.oneLossInARow) await this.#recovered(20);
    for (const status of await this.#house.statuses()) {
      if (!GRANTS.includes(status.name) || status.state === 'active' || status.state === 'retrying') continue;
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
  async #explain({ name, state, problem }: ApplianceStatus): Promise<void> {
    const where = `${this.#portal.name}: ${name}`;
    const brokenBefore = this.broken.length;
    if (state !== 'needs_pairing') this.broken.push(`${where} is ${state}`);
    if (!/^An answer was lost on \d{4}-/.test(problem?.message ?? '')) {
      this.broken.push(`${where} does not say that an answer was lost, but: ${problem?.message}`);
    }
    const ids = (await this.#house.grants()).filter(({ user }) => user === name).map(({ id }) => id);
    const sends: readonly Send[] = (await this.#house.sends('refresh_token')).filter(({ grant }) =>
      ids.includes(grant),
    );
    const refused = sends.findLast(({ status }) => status === 400);
    const before = sends.filter(({ token, at }) => token === refused?.token && at < (refused?.at ?? 0));
    const committed = before.some(({ successor }) => successor !== null);
    const killed = this.kills.some((kill) => before.some(({ at }) => at <= kill) && kill <= (refused?.at ?? 0));
    if (!committed) this.broken.push(`${where} was refused a token that nothing had been given for`);
    if (!killed) this.broken.push(`${where} was refused a token that no kill had come to`);
    if (this.broken.length === brokenBefore) this.#explained += 1;
  }

  /** The grant that the hub holds is the one that the portal goes on with. */
  async #prove(name: string): Promise<void> {
    const { hub, portal } = this.#house;
    const where = `${this.#portal.name}: ${name}`;
    await until(hub, name, ({ state }) => state === 'active', RECOVERY).catch(() => undefined);
    const status = await ask(hub, (control) => control.refresh(name));
    if (status.state !== 'active')
      return void this.broken.push(`${where} can't be refreshed: ${status.problem?.message}`);
    const { access_token } = await ask(hub, (control) => control.token(name));
    if ((await whoami(portal, access_token)) !== 200) this.broken.push(`${where} has a token that the portal refuses`);
  }
}

function inDoubt({ problem }: ApplianceStatus): boolean {
  return problem?.code === 'answer_lost';
}
