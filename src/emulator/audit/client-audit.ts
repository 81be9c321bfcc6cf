import { BoundedMap, type PersistentMap } from '../memory/bounded.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';

/** What the audit of clients counts: things that a good client of the portal never does. */
export interface Observations {
  /** Refresh tokens presented by their own client after they had been presented before. */
  refreshTokensRepeated: number;
  /** Authorization codes presented by their own client after they had been exchanged. */
  codesRepeated: number;
  /** Refreshes that began while another of the same grant was not yet answered. */
  overlappingRefreshes: number;
}

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

/**
 * Watches what clients do, and notes what a good client of the portal never does. It decides nothing. What it noted
 * outlives the process where there is a state file: a test that stops the portal asks for it afterwards.
 */
export class ClientAudit {
  readonly #grants: BoundedMap<GrantNotes>;
  readonly #authentications: BoundedMap<AuthenticationNotes>;

  /** @param kept what was noted before, and where it is kept; null: in memory only */
  constructor(kept: {
    readonly notes: PersistentMap<GrantNotes> | null;
    readonly authentications: PersistentMap<AuthenticationNotes> | null;
  }) {
    this.#grants = new BoundedMap(NOTED, kept.notes);
    this.#authentications = new BoundedMap(NOTED, kept.authentications);
  }

  /** The counts over all grants. */
  get observations(): Observations {
    const all = this.#grants.values();
    const sum = (count: (notes: GrantNotes) => number) => all.reduce((total, notes) => total + count(notes), 0);
    return {
      refreshTokensRepeated: sum(({ reused }) => reused),
      codesRepeated: sum(({ codeRepeated }) => codeRepeated),
      overlappingRefreshes: sum(({ overlapping }) => overlapping),
    };
  }

  /** A refresh token came that had come before. */
  reused(grant: Subject): void {
    this.#note(grant.clientId, grant.id, (notes) => {
      notes.reused += 1;
    });
  }

  /** A code came that had been exchanged. */
  codeRepeated({ clientId, grantId }: AuthorizationCode): void {
    this.#note(clientId, grantId ?? '', (notes) => {
      notes.codeRepeated += 1;
    });
  }

  /** A refresh began while another of the same grant was not answered. */
  overlapped(grant: Subject): void {
    this.#note(grant.clientId, grant.id, (notes) => {
      notes.overlapping += 1;
    });
  }

  /**
   * The newest tokens of a grant were refreshed.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  refreshed(grant: Subject, age: number, lifetime: number): void {
    if (age >= EARLY * lifetime) return;
    this.#note(grant.clientId, grant.id, (notes) => {
      notes.early += 1;
      notes.earliest = Math.min(notes.earliest, age);
    });
  }

  authenticationFailed(client: string | null, way: AuthenticationWay): void {
    const key = `${way} ${client}`;
    const notes = this.#authentications.get(key) ?? { client, way, count: 0 };
    notes.count += 1;
    this.#authentications.set(key, notes);
    this.#authentications.keep(key);
  }

  grants(): GrantNotes[] {
    return this.#grants.values();
  }

  authentications(): AuthenticationNotes[] {
    return this.#authentications.values();
  }

  /** Forgets everything. */
  clear(): void {
    this.#grants.clear();
    this.#authentications.clear();
  }

  #note(client: string, grant: string, change: (notes: GrantNotes) => void): void {
    change(this.#of(client, grant));
    this.#grants.keep(grant);
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
