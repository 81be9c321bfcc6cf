import { SEND_TIME } from '../../../src/store/postgres/link/lease-times.ts';
import { isOlder } from '../../../src/store/postgres/tables/site-grant-row.ts';
import { sha256 } from '../../../src/system/secret-hash.ts';
import type { TableRow } from './grant-table.ts';
import { CONNECTION, HUBS, type HubName } from './model-hub.ts';
import type { RefreshRequest } from './model-portal.ts';
import { REQUEST_TIMEOUT } from './passing-time.ts';
import type { WorldParts } from './world-parts.ts';

/** Something happened that must not. */
export class InvariantBroken extends Error {}

/** Why a family was revoked, where that can't be excluded. */
export type Exception = 'lost answer' | 'late write' | 'lost commits';

/** The mishap of a request of which no hub can know any more, see {@link LeaseInvariants.promoted}. */
const FORGOTTEN = 'forgotten';

/** What holds after every step, and at the end. */
export class LeaseInvariants {
  readonly #world: WorldParts;
  /** Tokens that an appliance reported at a hub as refused by the cloud, with the run of the hub. */
  readonly #rejected: { readonly name: HubName; readonly run: number; readonly token: string }[] = [];
  /** Requests whose attempts a promotion has lost, and the hubs that know of them and have to write them again. */
  readonly #lost = new Map<RefreshRequest, Set<HubName>>();
  /** What happened that is documented as an exception. */
  readonly exceptions = new Set<Exception>();

  constructor(world: WorldParts) {
    this.#world = world;
  }

  fingerprint(): string {
    const lost = [...this.#lost].map(([{ number }, knowers]) => [number, [...knowers]]);
    return JSON.stringify([this.#rejected, [...this.exceptions], lost]);
  }

  /**
   * A standby was promoted that may have lost commits. An attempt that it has lost is known to those hubs that have
   * read it. It is forgotten, and counts as if it had never been, only if none of them lives on, is back within the
   * time in which the switch settles, and has written it again: then no program can know of it.
   */
  promoted(): void {
    const { portal, hubs, database } = this.#world;
    const row = database.row(CONNECTION) ?? { generation: 0, revision: 0 };
    for (const request of portal.requests) {
      if (!isOlder(row, request.begun.row) || request.mishaps.has(FORGOTTEN)) continue;
      const knowers = HUBS.filter((name) => {
        const { run } = hubs[name];
        return run?.isLoaded === true && !isOlder(run.connections.seen, request.begun.row);
      });
      this.#lost.set(request, new Set(knowers));
    }
    this.#forget();
  }

  /** A hub was killed. */
  killed(name: HubName): void {
    for (const knowers of this.#lost.values()) knowers.delete(name);
    this.#forget();
  }

  /** Time passes. @param next in ms from the start of the check */
  passing(next: number): void {
    const { database, hubs } = this.#world;
    if (database.settlesAt === null || next <= database.settlesAt) return;
    for (const name of HUBS) if (!hubs[name].hasCaughtUp) this.killed(name);
  }

  /** An appliance at a hub has reported its access token as refused. */
  rejected(name: HubName, token: string): void {
    this.#rejected.push({ name, run: this.#world.hubs[name].run?.number ?? 0, token });
  }

  /** Checks a refresh whose bytes are written at this moment. */
  checkSend(request: RefreshRequest): void {
    const { database, portal, scenario } = this.#world;
    if (request.mishaps.has('late write') || portal.revokedBy !== null) return;
    const { row: begun, at } = request.begun;
    const row = database.row(CONNECTION);
    const isOwn = row?.holder === request.hub && JSON.parse(row.attempt ?? '{}').token === sha256(request.token);
    // Its own hub still has to write it again.
    const isLost = this.#lost.has(request) || request.mishaps.has(FORGOTTEN);
    expect(isOwn || isLost, `${request.hub} sends ${request.token} without an attempt of its own in the store`);
    expect(database.time <= at + SEND_TIME, `${request.hub} sends ${request.token} after the time for that`);
    const leaseEnd = (begun.leased_until ?? 0) - database.now;
    expect(
      leaseEnd >= REQUEST_TIMEOUT,
      `${request.hub} sends ${request.token}, and its lease may end before the answer`,
    );
    const before = portal.requests.filter(
      (one) =>
        one !== request && one.token === request.token && one.state === 'processed' && !one.mishaps.has(FORGOTTEN),
    );
    const { sends = 0 } = JSON.parse(begun.doubt ?? '{}') ?? {};
    expect(
      before.length <= sends,
      `${request.hub} sends ${request.token}, which was sent ${before.length} times, and knows of ${sends}`,
    );
    if (before.length === 0 || scenario.retryLostAnswer === 'early' || begun.distrusted !== null) return;
    const age = this.#age(begun);
    expect(age >= scenario.lifetime, `${request.hub} sends ${request.token} while its access token is valid`);
  }

  /** Checks what holds after every step. */
  check(): void {
    const { portal, hubs, database } = this.#world;
    for (const [request, knowers] of this.#lost) {
      if ([...knowers].some((name) => hubs[name].hasCaughtUp)) this.#lost.delete(request);
    }
    if (portal.revokedBy !== null && this.exceptions.size === 0) this.#explainRevocation();
    for (const name of HUBS) {
      const { held, run } = hubs[name];
      if (held === undefined) continue;
      const { accessToken, accessTokenRejectedAt, refused } = held.grant;
      expect(refused === null || portal.revokedBy !== null, `${name} gives up a grant that the portal has not revoked`);
      const wasRejected = this.#rejected.some(
        (one) => one.name === name && one.run === run?.number && one.token === accessToken.reveal(),
      );
      expect(!wasRejected || accessTokenRejectedAt !== null, `${name} hands out a token that was reported to it`);
      if (hubs[name].isQuiet) this.#checkQuiet(name);
    }
    const row = database.row(CONNECTION);
    // After a fault it may still have an attempt that ended without an outcome.
    const waiting = this.#world.faults > 0 ? undefined : portal.turns.find(({ hub }) => hub === row?.holder);
    expect(waiting === undefined, `${waiting?.hub} waits for its turn with an attempt that is written ahead`);
    const { token } = JSON.parse(row?.attempt ?? '{}');
    const { refreshToken } = JSON.parse(row?.sealed ?? '{}');
    expect(token === undefined || token === sha256(refreshToken), 'the open attempt is about another refresh token');
  }

  /** @returns whether everything has come to rest after an execution: all hubs can refresh, or know that they can't */
  isSettled(issuedBefore: number): boolean {
    const { portal, hubs } = this.#world;
    return HUBS.every((name) => {
      const { held, isQuiet } = hubs[name];
      if (held === undefined || !isQuiet || held.isUnsaved) return false;
      if (portal.revokedBy !== null) return held.health.kind === 'refused';
      const { refreshToken, doubt } = held.grant;
      return portal.issued > issuedBefore && refreshToken?.reveal() === portal.current && doubt === null;
    });
  }

  /** A hub that has nothing to do holds what the store has. */
  #checkQuiet(name: HubName): void {
    const row = this.#world.database.row(CONNECTION);
    const { held } = this.#world.hubs[name];
    if (row === undefined || held === undefined || held.isUnsaved) return;
    // Another hub may still put back what a promotion has lost.
    if (!row.confirmed) return;
    const { generation, accessToken, accessTokenRejectedAt } = held.grant;
    const stored = JSON.parse(row.sealed ?? '{}');
    expect(
      generation === row.generation && accessToken.reveal() === stored.accessToken,
      `${name} holds generation ${generation}, and the store has ${row.generation}`,
    );
    expect(
      row.distrusted === null || accessTokenRejectedAt !== null,
      `${name} hands out a token that another hub has marked as rejected`,
    );
  }

  #explainRevocation(): void {
    const { request, before } = this.#world.portal.revokedBy ?? {};
    if (request === undefined || before === undefined || before === null)
      throw new InvariantBroken('the portal has revoked the family, but no refresh token was used twice');
    const mishaps = new Set([...request.mishaps, ...before.mishaps]);
    if (mishaps.has('late write')) this.exceptions.add('late write');
    else if (before.mishaps.has(FORGOTTEN)) this.exceptions.add('lost commits');
    else if (before.mishaps.size > 0) this.exceptions.add('lost answer');
    else throw new InvariantBroken(`${before.token} was sent twice, and no answer was lost`);
  }

  /** Attempts that no hub can know of any more. */
  #forget(): void {
    for (const [request, knowers] of this.#lost) {
      if (knowers.size > 0) continue;
      request.mishaps.add(FORGOTTEN);
      this.#lost.delete(request);
    }
  }

  /** The age of the access token in a row, in ms. */
  #age(row: TableRow): number {
    const { hubs } = this.#world;
    const { obtained } = JSON.parse(row.sealed ?? '{}');
    return hubs[obtained.boot === 'boot-A' ? 'A' : 'B'].uptime - obtained.uptime;
  }
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new InvariantBroken(otherwise);
}
