import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionResponse } from '../../src/control/messages.ts';
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
import { FIREWALL } from './portal-faults.ts';
import { PORTAL_KINDS } from './portal-kinds.ts';

/** How a portal handles a refresh token that is used again. */
interface Portal {
  readonly name: string;
  readonly flags: readonly string[];
  /**
   * It accepts the newest refresh token and the one before. Two lost answers in a row therefore lose the grant, so the
   * hub is killed again only when no grant is in doubt.
   */
  readonly oneLossInARow?: true;
  /** A lost answer costs the grant. The hub must then have been killed during the refresh, and report the loss. */
  readonly refusesReuse?: true;
}

const KEEPS_PREVIOUS: Portal = {
  name: 'previous token valid',
  flags: ['--refresh-grace', '1', '--content-encoding', 'gzip'],
  oneLossInARow: true,
};
const SAME_AGAIN: Portal = {
  name: 'same response again',
  flags: ['--refresh-grace-time', '1h', '--content-encoding', 'deflate'],
};
const REFUSES: Portal = {
  name: 'reuse refused',
  flags: ['--refresh-grace', '0', '--content-encoding', 'br'],
  refusesReuse: true,
};

/** The number of grants. The short form has fewer, and kills the hub during forced refreshes. */
const [LONG_GRANTS, SHORT_GRANTS] = [20, 4];
/** The short form ends when every kind of event has occurred, or after this number of kills. */
const MAX_SHORT_KILLS = 20;
/** Appliances that are paired repeatedly during the experiment, one at each portal. */
const GUESTS = ['guest-1', 'guest-2', 'guest-3'];
/** The pause between two of their pairings, in ms. */
const PAIRING_INTERVAL = 700;
/** Connections at a portal that allows one request in a second. */
const PACED = ['paced-1', 'paced-2', 'paced-3'];
/** In seconds. */
const TOKEN_LIFETIME = 6;
/** The interval of an appliance's token requests, in ms. */
const REQUEST_INTERVAL = 2000;
/** In seconds: by then everything has recovered that can. */
const RECOVERY = 60;

export const experiment: Experiment = {
  name: 'Kills',
  promise:
    'If the hub is killed at any point of a refresh, a pairing, an import or its start, it loses no grant of a portal that keeps the previous token valid. Of a portal that refuses any reuse it loses only grants whose outcome it could not know, and status reports them.',
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
  const others = Array.from(
    { length: scale.long ? LONG_GRANTS : SHORT_GRANTS },
    (_, index) => `appliance-${index + 1}`,
  );
  const names = [...others, ...PACED];
  await using home = await ChaosHarness.start(
    [...others, ...GUESTS],
    ['--token-lifetime', `${TOKEN_LIFETIME}s`, '--seed', String(seed), ...portal.flags],
    { kinds: PORTAL_KINDS, paced: PACED },
  );
  await home.portal.addFault({ ...FIREWALL, grant_type: 'refresh_token', every: 10 });
  // Delays before and after the portal acts, so that a kill more often hits a refresh.
  const slow = { kind: 'delay', endpoint: 'token', times: null, probability: 0.5 };
  await home.portal.addFault({ ...slow, seconds: 0.15, commit: true });
  await home.portal.addFault({ ...slow, seconds: 0.15 });
  const fleet = await home.pairAppliances(names);
  const killing = new Killing(home, portal, names, new SeededRandom(seed));
  const load = await TokenLoad.start(home.hub, home.portal, fleet, REQUEST_INTERVAL);
  {
    await using _load = load;
    await using _guests = await killing.pairGuests();
    const continues = () =>
      killing.kills.length < wanted || (!scale.long && killing.kills.length < MAX_SHORT_KILLS && !killing.metAll(load));
    while (continues() && !scale.signal.aborted) {
      if (scale.long) await killing.atRandom();
      else await killing.duringRefreshes();
      scale.progress(`${portal.name}: ${killing.kills.length} kills`);
    }
  }
  return await killing.conclude(load);
}

/** A hub that is killed repeatedly. */
class Killing {
  /** The times of the kills, in ms since 1970. */
  readonly kills: number[] = [];
  readonly broken: string[] = [];
  readonly #home: ChaosHarness;
  readonly #portal: Portal;
  readonly #names: readonly string[];
  readonly #random: SeededRandom;
  /** The connections of the interrupted refreshes, of the lost grants and of the guests' pairings. */
  readonly #interrupted: string[] = [];
  readonly #lost: string[] = [];
  readonly #pairings: string[] = [];
  #inStartUp = 0;
  #inPairing = 0;
  #explained = 0;
  #pairingsUnderWay = 0;
  /** The refresh tokens of other programs that were to be imported. */
  readonly #imported = new Set<string>();
  #importsUnderWay = 0;
  #inImport = 0;
  #unpairings = 0;
  /** When the refreshes before the kill were begun, in ms since 1970. */
  #begunAt = 0;
  /** The number of kills while a refresh waited for its turn at the paced portal. */
  #waiting = 0;

  constructor(home: ChaosHarness, portal: Portal, names: readonly string[], random: SeededRandom) {
    this.#home = home;
    this.#portal = portal;
    this.#names = names;
    this.#random = random;
  }

  /** Kills the hub at a random time, restarts it and checks its status. */
  async atRandom(): Promise<void> {
    await sleep(1500 * this.#random.fraction());
    await this.#beginWork(PACED);
    await this.#killRunning();
    if (this.#random.fraction() < 0.3) await this.#killInStartUp();
    await this.#restart(this.#portal.oneLossInARow === true);
  }

  /** Kills the hub while it refreshes every grant, and once also during its start. */
  async duringRefreshes(): Promise<void> {
    await this.#beginWork(this.#names);
    await this.#killRunning();
    if (this.#inStartUp === 0) await this.#killInStartUp();
    await this.#restart(true);
  }

  /** Begins refreshes and an import over a grant, and waits a moment. */
  async #beginWork(refreshed: readonly string[]): Promise<void> {
    const { hub } = this.#home;
    const target = this.#random.pick(this.#names);
    const token = await this.#home.logInElsewhere(target);
    this.#imported.add(token);
    this.#begunAt = Date.now();
    for (const name of refreshed) if (name !== target) startRefresh(hub, name);
    this.#importsUnderWay += 1;
    // It fails if the hub is killed or the firewall refuses it.
    const ended = this.#home.importOver(target, token).catch(() => undefined);
    void ended.finally(() => {
      this.#importsUnderWay -= 1;
    });
    await sleep(300 * this.#random.fraction());
  }

  /** Whether each kind of event has occurred, and refreshes were interrupted at portals of both kinds. */
  metAll({ handOuts }: TokenLoad): boolean {
    const oauth2 = this.#atOAuth2(this.#interrupted);
    const interrupted = [oauth2, this.#interrupted.length - oauth2];
    const counts = [
      ...[this.#inStartUp, this.#inPairing, this.#atOAuth2(this.#pairings), handOuts.length, ...interrupted],
      ...[this.#inImport, this.#unpairings, this.#waiting],
    ];
    return counts.every((count) => count > 0) && (this.#portal.refusesReuse === undefined || this.#lost.length > 0);
  }

  /** The number of these connections that are at an `oauth2` portal. */
  #atOAuth2(names: readonly string[]): number {
    return names.filter((name) => this.#home.usesOAuth2(name)).length;
  }

  /** Pairs appliances repeatedly, whatever happens to the hub, until it is disposed of. */
  async pairGuests(): Promise<AsyncDisposable> {
    const stop = new AbortController();
    await Promise.all(GUESTS.map((name) => this.#home.addAppliance(name)));
    const loops = GUESTS.map(async (name) => {
      while (!stop.signal.aborted) {
        // This fails while the hub is down. The next pairing replaces a lost link.
        this.#pairingsUnderWay += 1;
        const paired = await this.#home.pair(name).catch(() => false);
        this.#pairingsUnderWay -= 1;
        if (paired !== false) {
          this.#pairings.push(name);
          // Every second pairing replaces a grant.
          const isEven = this.#pairings.filter((each) => each === name).length % 2 === 0;
          if (!isEven) await this.#unpairDuringRefresh(name).catch(() => undefined);
        }
        await sleep(PAIRING_INTERVAL);
      }
    });
    return {
      async [Symbol.asyncDispose]() {
        stop.abort();
        await Promise.all(loops);
      },
    };
  }

  /**
   * Unpairs a connection during its refresh. Unless the hub is killed meanwhile, the portal has nothing left of the
   * grant. Rejects if the hub is down.
   */
  async #unpairDuringRefresh(name: string): Promise<void> {
    const { hub } = this.#home;
    const kills = this.kills.length;
    const grant = await this.#home.grantInUse(name);
    startRefresh(hub, name);
    await sleep(200 * this.#random.fraction());
    await hub.ask((control) => control.request('unpair', { name }));
    const isRevoked = await eventually(() => this.#home.isNewestRevoked(grant), 3).catch(() => false);
    if (this.kills.length > kills) return;
    this.#unpairings += 1;
    if (!isRevoked) this.broken.push(`${this.#portal.name}: unpairing ${name} did not revoke its newest token`);
  }

  async conclude({ handOuts, refused }: TokenLoad): Promise<ExperimentResult> {
    const { name, refusesReuse } = this.#portal;
    await this.#checkGrants(RECOVERY);
    const refreshes = (await this.#home.sends('refresh_token')).filter(({ status }) => status === 200);
    const refusedByFirewall = await this.#home.hits('status');
    await this.#home.portal.ask('DELETE', '/_emulator/faults');
    await Promise.all([
      ...this.#names.map((appliance) => this.#checkRefresh(appliance)),
      ...GUESTS.map((guest) => this.#pairAgain(guest)),
    ]);
    const codes = new Set<string>();
    for (const { token } of await this.#home.sends('authorization_code')) {
      if (codes.has(token)) this.broken.push(`${name}: a code was sent twice`);
      codes.add(token);
    }
    const lost = this.#lost.length;
    if (lost > 0 && refusesReuse === undefined) this.broken.push(`${name}: ${lost} grants lost`);
    if (refused.length > 0)
      this.broken.push(`${name}: the hub issued ${refused.length} tokens that the portal rejected`);
    const figures = prefixFigures(name, {
      kills: this.kills.length,
      'kills during the start': this.#inStartUp,
      'kills during a pairing': this.#inPairing,
      'interrupted refreshes': this.#interrupted.length,
      'interrupted refreshes at an oauth2 portal': this.#atOAuth2(this.#interrupted),
      'tokens issued meanwhile': handOuts.length,
      'pairings meanwhile': this.#pairings.length,
      'pairings meanwhile at an oauth2 portal': this.#atOAuth2(this.#pairings),
      'unpairings during a refresh': this.#unpairings,
      'imports over a grant': this.#imported.size,
      'kills during an import': this.#inImport,
      'kills while a refresh waits for its turn at a paced portal': this.#waiting,
      'refreshes with a compressed answer': refreshes.length,
      'refreshes refused by a firewall': refusedByFirewall,
      'grants lost': refusesReuse
        ? `${lost}, ${this.#explained} of them by a kill and reported`
        : `${lost} of ${this.#names.length}`,
      ...(refusesReuse && { 'grants lost at an oauth2 portal': this.#atOAuth2(this.#lost) }),
    });
    return { figures, broken: this.broken };
  }

  async #kill(): Promise<void> {
    await this.#home.hub.kill('SIGKILL');
    this.kills.push(Date.now());
  }

  async #killRunning(): Promise<void> {
    if (this.#pairingsUnderWay > 0) this.#inPairing += 1;
    if (this.#importsUnderWay > 0) this.#inImport += 1;
    await this.#kill();
  }

  async #killInStartUp(): Promise<void> {
    const starting = this.#home.hub.launch().then(
      () => true,
      () => false,
    );
    await Promise.race([sleep(600 * this.#random.fraction()), starting]);
    await this.#kill();
    if (!(await starting)) this.#inStartUp += 1;
  }

  /** Restarts the hub and checks its grants. @param untilSettled first waits until no grant is in doubt */
  async #restart(untilSettled: boolean): Promise<void> {
    const { hub } = this.#home;
    await hub.launch();
    // Counted in the log, because on a busy machine the retry may be over before the status can be read.
    this.#interrupted.push(...hub.events('refresh_interrupted').map(({ connection }) => String(connection)));
    await this.#checkPaced();
    await this.#checkGrants(untilSettled ? 20 : null);
  }

  /**
   * Checks every grant.
   * @param settled first waits until no grant is in doubt, for this many seconds; null: does not wait
   */
  async #checkGrants(settled: number | null): Promise<void> {
    await this.#home.collectRequests();
    if (settled !== null) await this.#waitUntilSettled(settled);
    const isLost = ({ name, state }: ConnectionResponse) =>
      this.#names.includes(name) && state !== 'active' && state !== 'retrying';
    const lost = (await this.#home.statuses()).filter(isLost);
    for (const status of lost) {
      this.#lost.push(status.name);
      if (this.#portal.refusesReuse) await this.#explain(status);
      else this.broken.push(`${this.#portal.name}: ${status.name} is ${status.state}: ${status.problem?.message}`);
    }
    await Promise.all(lost.map(({ name }) => this.#pairAgain(name)));
  }

  /**
   * A refresh that waited for its turn when the hub was killed has not been sent, so it is no lost answer: those that
   * count as lost were written ahead one turn after another.
   */
  async #checkPaced(): Promise<void> {
    const users = new Map((await this.#home.grants()).map(({ id, user }) => [id, user]));
    const killedAt = this.kills.at(-1) ?? 0;
    const sent = (await this.#home.sends('refresh_token'))
      .filter(({ at }) => at >= this.#begunAt && at <= killedAt)
      .map(({ grant }) => users.get(grant));
    const waiting = PACED.filter((name) => !sent.includes(name));
    if (waiting.length > 0) this.#waiting += 1;
    const lostAt = this.#home.hub
      .events('refresh_interrupted')
      .filter(({ connection }) => PACED.includes(String(connection)))
      .map(({ message }) => lostAnswerTime(String(message)))
      .toSorted((one, other) => one - other);
    if (lostAt.some((at, index) => at - (lostAt[index - 1] ?? 0) < 500))
      this.broken.push(`${this.#portal.name}: refreshes that waited for their turn count as lost`);
  }

  async #pairAgain(name: string): Promise<void> {
    await this.#home.pair(name).catch((error: unknown) => {
      this.broken.push(`${this.#portal.name}: ${name} could not be paired: ${messageOf(error)}`);
    });
  }

  /** Waits until no grant is in doubt: each one was refreshed or refused. */
  async #waitUntilSettled(seconds: number): Promise<void> {
    const settled = async () => !(await this.#home.statuses()).some(inDoubt);
    await eventually(settled, seconds).catch(() => {
      this.broken.push(`${this.#portal.name}: a grant was in doubt for ${seconds} s`);
    });
  }

  /**
   * Checks a lost grant: the hub was killed between the first and the second use of the refused token, and reports it.
   */
  async #explain({ name, state, problem }: ConnectionResponse): Promise<void> {
    const where = `${this.#portal.name}: ${name}`;
    const brokenBefore = this.broken.length;
    if (state !== 'needs_pairing') this.broken.push(`${where} is ${state}`);
    const lostAt = lostAnswerTime(problem?.message ?? '');
    if (Number.isNaN(lostAt)) {
      this.broken.push(`${where} does not report a lost answer, but: ${problem?.message}`);
    }
    const ids = (await this.#home.grants()).filter(({ user }) => user === name).map(({ id }) => id);
    const sends: readonly SentCredential[] = (await this.#home.sends('refresh_token')).filter(({ grant }) =>
      ids.includes(grant),
    );
    const refused = sends.findLast(({ status }) => status === 400);
    const before = sends.filter(({ token, at }) => token === refused?.token && at < (refused?.at ?? 0));
    const committed = before.some(({ successor }) => successor !== null);
    // From the time at which the hub sent it, because a busy portal may read the request long after the kill.
    // A grant stays until an import over it has ended.
    if (this.#imported.has(refused?.token ?? '')) this.broken.push(`${where}: an import has cost the former grant`);
    const killed = this.kills.some((kill) => lostAt <= kill && kill <= (refused?.at ?? 0));
    if (!committed)
      this.broken.push(`${where}: a refresh token was refused without an earlier refresh that the portal made`);
    if (!killed) this.broken.push(`${where}: a refresh token was refused without a kill between its two uses`);
    if (this.broken.length === brokenBefore) this.#explained += 1;
  }

  /** Checks that the portal accepts the hub's refresh token and access token. */
  async #checkRefresh(name: string): Promise<void> {
    const { hub, portal } = this.#home;
    const where = `${this.#portal.name}: ${name}`;
    await hub.until(name, ({ state }) => state === 'active', RECOVERY).catch(() => undefined);
    const status = await hub.ask((control) => control.request('refresh', { name }));
    if (status.state !== 'active')
      return void this.broken.push(`${where} could not be refreshed: ${status.problem?.message}`);
    const { access_token } = await hub.ask((control) => control.request('token', { name }));
    if ((await whoami(portal, access_token)) !== 200) this.broken.push(`${where} has a token that the portal rejects`);
  }
}

/** When the answer that a problem reports was lost, in ms since 1970; NaN if it reports none. */
function lostAnswerTime(message: string): number {
  return Date.parse(/^An answer was lost on (\S+),/.exec(message)?.[1] ?? '');
}

function inDoubt({ problem }: ConnectionResponse): boolean {
  return problem?.code === 'answer_lost';
}
