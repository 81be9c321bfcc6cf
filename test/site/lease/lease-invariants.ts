import { REFRESH_LEASE, SEND_TIME } from '../../../src/store/postgres/link/lease-times.ts';
import { sha256 } from '../../../src/system/secret-hash.ts';
import { CONNECTION, HUBS, type HubName } from './model-hub.ts';
import type { RefreshRequest } from './model-portal.ts';
import type { WorldParts } from './world-parts.ts';

/** Something happened that must not. */
export class InvariantBroken extends Error {}

/** Why a family was revoked, where that can't be excluded. */
export type Exception = 'lost answer' | 'late write' | 'lost commits';

/** What holds after every step, and at the end. */
export class LeaseInvariants {
  readonly #world: WorldParts;
  /** Tokens that an appliance reported at a hub as refused by the cloud, with the run of the hub. */
  readonly #rejected: { readonly name: HubName; readonly run: number; readonly token: string }[] = [];
  /** What happened that is documented as an exception. */
  readonly exceptions = new Set<Exception>();

  constructor(world: WorldParts) {
    this.#world = world;
  }

  fingerprint(): string {
    return JSON.stringify([this.#rejected, [...this.exceptions]]);
  }

  /** A promotion has lost commits: what was known about the requests so far may be lost with them. */
  lostCommits(): void {
    for (const request of this.#world.portal.requests) request.mishaps.add('commits lost');
  }

  /** An appliance at a hub has reported its access token as refused. */
  rejected(name: HubName, token: string): void {
    this.#rejected.push({ name, run: this.#world.hubs[name].run?.number ?? 0, token });
  }

  /** Checks a refresh whose bytes are written at this moment. */
  checkSend(request: RefreshRequest): void {
    const { database, portal, scenario } = this.#world;
    if (request.mishaps.has('late write') || portal.revokedBy !== null) return;
    // The database has lost what was known about this token.
    if (portal.requests.some(({ token, mishaps }) => token === request.token && mishaps.has('commits lost'))) return;
    const row = database.row(CONNECTION);
    const isOwn = row?.holder === request.hub && JSON.parse(row.attempt ?? '{}').token === sha256(request.token);
    expect(isOwn, `${request.hub} sends ${request.token} without an attempt of its own in the store`);
    const sendBefore = (row?.leased_until ?? 0) - REFRESH_LEASE + SEND_TIME;
    expect(database.now <= sendBefore, `${request.hub} sends ${request.token} after the time for that`);
    const before = portal.requests.filter(
      (one) => one !== request && one.token === request.token && one.state === 'processed',
    );
    const { sends = 0 } = JSON.parse(row?.doubt ?? '{}') ?? {};
    expect(
      before.length <= sends,
      `${request.hub} sends ${request.token}, which was sent ${before.length} times, and knows of ${sends}`,
    );
    if (before.length === 0 || scenario.retryLostAnswer === 'early' || row?.distrusted !== null) return;
    expect(this.#age() >= scenario.lifetime, `${request.hub} sends ${request.token} while its access token is valid`);
  }

  /** Checks what holds after every step. */
  check(): void {
    const { portal, hubs } = this.#world;
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
    else if (mishaps.has('commits lost')) this.exceptions.add('lost commits');
    else if (before.mishaps.size > 0) this.exceptions.add('lost answer');
    else throw new InvariantBroken(`${before.token} was sent twice, and no answer was lost`);
  }

  /** The age of the stored access token, in ms. */
  #age(): number {
    const { database, hubs } = this.#world;
    const { obtained } = JSON.parse(database.row(CONNECTION)?.sealed ?? '{}');
    return hubs[obtained.boot === 'boot-A' ? 'A' : 'B'].uptime - obtained.uptime;
  }
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new InvariantBroken(otherwise);
}
