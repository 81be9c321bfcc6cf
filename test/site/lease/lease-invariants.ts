import { SEND_TIME } from '../../../src/store/postgres/link/site-state.ts';
import { isOlder } from '../../../src/store/postgres/tables/site-grant-row.ts';
import { sha256 } from '../../../src/system/secret-hash.ts';
import type { TableRow } from './grant-table.ts';
import { CONNECTION, HUBS, type HubName } from './model-hub.ts';
import { loginOf, type RefreshRequest, type TokenFamily } from './model-portal.ts';
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
  /** The refresh token that the store has; null if the connection was unpaired. */
  #stored: string | null = 'refresh-1';
  /** What a commit has broken. */
  #broken: string | null = null;
  /** A refresh token of each login that was stored when the connection was unpaired, or that an import had taken over. */
  readonly #discarded = new Set<string>();
  /**
   * Whether a hub was killed, has said that the connection could not be unpaired, or has another login by now: then a
   * token may be left at the portal.
   */
  #mayForget = false;
  /** What imports have said. */
  readonly #imports: string[] = [];
  /** What happened that is documented as an exception. */
  readonly exceptions = new Set<Exception>();

  constructor(world: WorldParts) {
    this.#world = world;
  }

  fingerprint(): string {
    const lost = [...this.#lost].map(([{ number }, knowers]) => [number, [...knowers]]);
    const logins = [this.#stored, [...this.#discarded], this.#mayForget, this.#imports];
    return JSON.stringify([this.#rejected, [...this.exceptions], lost, logins]);
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
    this.#mayForget = true;
    this.#forgets(name);
  }

  #forgets(name: HubName): void {
    for (const knowers of this.#lost.values()) knowers.delete(name);
    this.#forget();
  }

  /** Time passes. @param next in ms from the start of the check */
  passing(next: number): void {
    const { database, hubs } = this.#world;
    if (database.settlesAt === null || next <= database.settlesAt) return;
    for (const name of HUBS) if (!hubs[name].hasCaughtUp) this.#forgets(name);
  }

  /** An appliance at a hub has reported its access token as refused. */
  rejected(name: HubName, token: string): void {
    this.#rejected.push({ name, run: this.#world.hubs[name].run?.number ?? 0, token });
  }

  /** An import has ended. @param end what it has said; null if its hub was killed */
  imported(end: string | null): void {
    if (end !== null) this.#imports.push(end);
    if (end === 'done') this.#discarded.add('imported-1');
  }

  /** An unpairing has ended. @param end as above */
  unpaired(end: string | null): void {
    if (end !== 'done') this.#mayForget = true;
  }

  /** A hub has committed a row. */
  committed({ sealed }: TableRow): void {
    const before = this.#stored;
    const token = (sealed === null ? null : JSON.parse(sealed).refreshToken) as string | null;
    this.#stored = token;
    // What a promotion has lost may come back.
    if (token === before || this.#world.database.timeline > 0) return;
    const isPlaceholder = token === 'imported-1';
    if (token === null) this.#discarded.add(before ?? '');
    else if (before === null) {
      this.#mayForget = true;
      if (!isPlaceholder) this.#broken ??= `a late write brings ${token} back`;
    } else if (loginOf(before) === 'refresh' && isPlaceholder)
      this.#broken ??= `an import gives up ${before} before the portal has answered`;
    else if (loginOf(before) === loginOf(token) ? numberOf(token) < numberOf(before) : loginOf(token) === 'refresh')
      this.#broken ??= `a late write replaces ${before} by ${token}`;
  }

  /** Checks a refresh whose bytes are written at this moment. */
  checkSend(request: RefreshRequest): void {
    const { database, portal, scenario } = this.#world;
    if (request.mishaps.has('late write') || portal.familyOf(request.token).revokedBy !== null) return;
    const { row: begun, at } = request.begun;
    const row = database.row(CONNECTION);
    const isOwn = row?.holder === request.hub && JSON.parse(row.attempt ?? '{}').token === sha256(request.token);
    // Its own hub still has to write it again.
    const isLost = this.#lost.has(request) || request.mishaps.has(FORGOTTEN);
    // Another hub has unpaired the connection since then, or a promotion has lost what an import has reserved.
    const isFree =
      this.#discarded.has(request.token) ||
      (request.token === 'imported-1' && (this.#stored === null || database.timeline > 0));
    const isKnown = isOwn || isLost || isFree;
    expect(isKnown, `${request.hub} sends ${request.token} without an attempt of its own in the store`);
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
    expect(
      age >= JSON.parse(begun.sealed ?? '{}').lifetime,
      `${request.hub} sends ${request.token} while its access token is valid`,
    );
  }

  /** Checks what holds after every step. */
  check(): void {
    const { portal, hubs, database } = this.#world;
    for (const [request, knowers] of this.#lost) {
      if ([...knowers].some((name) => hubs[name].hasCaughtUp)) this.#lost.delete(request);
    }
    if (this.#broken !== null) throw new InvariantBroken(this.#broken);
    for (const family of Object.values(portal.families)) {
      if (family.revokedBy !== null && this.exceptions.size === 0) this.#explainRevocation(family.revokedBy);
    }
    for (const end of this.#imports) this.#checkImport(end);
    for (const name of HUBS) {
      const { held, run } = hubs[name];
      if (held === undefined) continue;
      const { accessToken, accessTokenRejectedAt, refreshToken, refused } = held.grant;
      const hasEnded = portal.familyOf(refreshToken?.reveal() ?? '').hasEnded;
      expect(refused === null || hasEnded, `${name} gives up a grant that the portal has not revoked`);
      const wasRejected = this.#rejected.some(
        (one) => one.name === name && one.run === run?.number && one.token === accessToken.reveal(),
      );
      expect(!wasRejected || accessTokenRejectedAt !== null, `${name} hands out a token that was reported to it`);
      if (hubs[name].isQuiet) this.#checkQuiet(name);
    }
    const row = database.row(CONNECTION);
    const { token } = JSON.parse(row?.attempt ?? '{}');
    const { refreshToken } = JSON.parse(row?.sealed ?? '{}');
    const isOfImport = token === sha256('imported-1');
    expect(
      token === undefined || isOfImport || token === sha256(refreshToken),
      'the open attempt is about another refresh token',
    );
  }

  /** @returns whether everything has come to rest after an execution: all hubs can refresh, or know that they can't */
  isSettled(issuedBefore: number): boolean {
    const { portal, hubs, database } = this.#world;
    const isUnpaired = database.row(CONNECTION)?.sealed === null;
    if (isUnpaired && HUBS.every((name) => hubs[name].isQuiet)) this.#checkDiscarded();
    return HUBS.every((name) => {
      const { held, isQuiet } = hubs[name];
      if (isUnpaired || held === undefined || !isQuiet || held.isUnsaved) return isUnpaired && isQuiet;
      const { refreshToken, doubt } = held.grant;
      const family = portal.familyOf(refreshToken?.reveal() ?? '');
      if (family.hasEnded) return held.health.kind === 'refused';
      return portal.issued > issuedBefore && refreshToken?.reveal() === family.current && doubt === null;
    });
  }

  /** A hub that has nothing to do holds what the store has. */
  #checkQuiet(name: HubName): void {
    const row = this.#world.database.row(CONNECTION);
    const { held } = this.#world.hubs[name];
    // Another hub may still put back what a promotion has lost.
    if (row === undefined || held?.isUnsaved === true || !row.confirmed) return;
    expect((held === undefined) === (row.sealed === null), `${name} and the store do not both have a grant`);
    if (held === undefined) return;
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

  /** An import that has ended has stored its login, or revoked it, or says that an answer was lost. */
  #checkImport(end: string): void {
    const { portal, hubs } = this.#world;
    const { imported } = portal.families;
    const isHeld = HUBS.some((name) => loginOf(hubs[name].held?.grant.refreshToken?.reveal() ?? '') === 'imported');
    const isStored = isHeld || this.#stored === null || loginOf(this.#stored) === 'imported';
    if (end === 'done') expect(isStored || this.#mayForget, 'an import is done, and its login is not there');
    else if (end.includes('imported login is lost'))
      expect(imported.hasEnded, 'an import has left tokens at the portal');
    else if (!end.includes("portal's answer was lost"))
      expect(imported.issued === 1 || imported.hasEnded || isHeld, `an import has used its token, and says: ${end}`);
  }

  /** Of an unpaired connection the portal has no login any more that a hub could have revoked. */
  #checkDiscarded(): void {
    const { portal } = this.#world;
    for (const token of this.#discarded) {
      const isLost = portal.requests.some(
        (one) => loginOf(one.token) === loginOf(token) && (one.mishaps.has('answer lost') || one.mishaps.has('killed')),
      );
      const isRevoked = portal.familyOf(token).hasEnded;
      expect(isRevoked || isLost || this.#mayForget, `nobody has revoked the login of ${token}`);
    }
  }

  #explainRevocation({ request, before }: NonNullable<TokenFamily['revokedBy']>): void {
    if (before === null)
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

function numberOf(token: string): number {
  return Number(token.split('-')[1]);
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new InvariantBroken(otherwise);
}
