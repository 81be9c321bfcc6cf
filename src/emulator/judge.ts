import type { AuthorizationCode } from './authorization-codes.ts';
import { BoundedMap } from './bounded.ts';
import type { Observations } from './observations.ts';

/** Grants, codes and clients that something was noted of. */
const NOTED = 10_000;

/** A refresh before this part of the token's lifetime had passed came far too early. */
const EARLY = 0.5;

/** What one client did wrong with one grant. Counts. */
export interface GrantNotes {
  readonly client: string;
  readonly grant: string;
  reused: number;
  overlapping: number;
  early: number;
  /** Seconds after the issue that the earliest of the early refreshes came. */
  earliest: number;
  /** The code of the grant was presented again. */
  codeRepeated: number;
}

/** How a client tried to authenticate. */
export type AuthenticationWay = 'form' | 'authorization header' | 'none';

/** Failed client authentications of one kind. */
export interface AuthenticationNotes {
  /** The registered client that was named, or null. */
  readonly client: string | null;
  readonly way: AuthenticationWay;
  count: number;
}

/** Watches what clients do, and notes what a good client of the portal never does. It decides nothing. */
export class Judge {
  readonly observations: Observations = { refreshTokensRepeated: 0, codesRepeated: 0, overlappingRefreshes: 0 };
  #grants = new BoundedMap<GrantNotes>(NOTED);
  #authentications = new BoundedMap<AuthenticationNotes>(NOTED);

  /** A refresh token came that had come before. */
  reused(grant: Subject): void {
    this.observations.refreshTokensRepeated += 1;
    this.#of(grant.clientId, grant.id).reused += 1;
  }

  /** A code came that had been exchanged. */
  codeRepeated({ clientId, grantId }: AuthorizationCode): void {
    this.observations.codesRepeated += 1;
    this.#of(clientId, grantId ?? '').codeRepeated += 1;
  }

  /** A refresh began while another of the same grant was not answered. */
  overlapped(grant: Subject): void {
    this.observations.overlappingRefreshes += 1;
    this.#of(grant.clientId, grant.id).overlapping += 1;
  }

  /**
   * The newest tokens of a grant were refreshed.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  refreshed(grant: Subject, age: number, lifetime: number): void {
    if (age >= EARLY * lifetime) return;
    const notes = this.#of(grant.clientId, grant.id);
    notes.early += 1;
    notes.earliest = Math.min(notes.earliest, age);
  }

  authenticationFailed(client: string | null, way: AuthenticationWay): void {
    const key = `${way} ${client}`;
    const notes = this.#authentications.get(key) ?? { client, way, count: 0 };
    notes.count += 1;
    this.#authentications.set(key, notes);
  }

  grants(): GrantNotes[] {
    return this.#grants.values();
  }

  authentications(): AuthenticationNotes[] {
    return this.#authentications.values();
  }

  /** Forgets everything. */
  clear(): void {
    Object.assign(this.observations, { refreshTokensRepeated: 0, codesRepeated: 0, overlappingRefreshes: 0 });
    this.#grants = new BoundedMap(NOTED);
    this.#authentications = new BoundedMap(NOTED);
  }

  #of(client: string, grant: string): GrantNotes {
    const known = this.#grants.get(grant);
    if (known !== undefined) return known;
    const notes = {
      client,
      grant,
      reused: 0,
      overlapping: 0,
      early: 0,
      earliest: Number.POSITIVE_INFINITY,
      codeRepeated: 0,
    };
    this.#grants.set(grant, notes);
    return notes;
  }
}

/** The grant that something is noted of. */
interface Subject {
  readonly id: string;
  readonly clientId: string;
}
