import { BoundedMap } from '../memory/bounded.ts';

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
const MAX_NOTES = 10_000;

/** A refresh before this part of the token's lifetime had passed came far too early. */
const EARLY_SHARE = 0.5;

/** What one client did wrong with one grant. Counts. */
export interface GrantNotes {
  readonly client: string;
  readonly grant: string;
  /** A refresh token came that had come before. */
  reused: number;
  /** A refresh began while another of the same grant was not answered. */
  overlapping: number;
  /** The newest tokens were refreshed long before they were due. */
  early: number;
  /** Seconds after the issue that the earliest of the early refreshes came; null before there was one. */
  earliest: number | null;
  /** The code of the grant came after it had been exchanged. */
  codeRepeated: number;
}

const NOTHING = { reused: 0, overlapping: 0, early: 0, earliest: null, codeRepeated: 0 };

/** How a client tried to authenticate. */
export const AUTHENTICATION_WAYS = ['form', 'authorization header', 'none'] as const;
export type AuthenticationWay = (typeof AUTHENTICATION_WAYS)[number];

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
  readonly #grants = new BoundedMap<GrantNotes>(MAX_NOTES);
  readonly #authentications = new BoundedMap<AuthenticationNotes>(MAX_NOTES);

  /** @param kept what was noted before */
  constructor(kept: {
    readonly notes?: readonly GrantNotes[];
    readonly authentications?: readonly AuthenticationNotes[];
  }) {
    for (const one of kept.notes ?? []) this.#grants.set(one.grant, one);
    for (const one of kept.authentications ?? []) this.#authentications.set(authenticationKey(one), one);
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

  /** A client has done one of these with a grant. */
  count(what: 'reused' | 'codeRepeated' | 'overlapping', grant: Subject): void {
    this.#note(grant, (notes) => {
      notes[what] += 1;
    });
  }

  /**
   * The newest tokens of a grant were refreshed.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  refreshed(grant: Subject, age: number, lifetime: number): void {
    if (age >= EARLY_SHARE * lifetime) return;
    this.#note(grant, (notes) => {
      notes.early += 1;
      notes.earliest = Math.min(notes.earliest ?? age, age);
    });
  }

  authenticationFailed(client: string | null, way: AuthenticationWay): void {
    const key = authenticationKey({ client, way });
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
    this.#grants.clear();
    this.#authentications.clear();
  }

  #note({ id, clientId }: Subject, change: (notes: GrantNotes) => void): void {
    const notes = this.#grants.get(id) ?? { client: clientId, grant: id, ...NOTHING };
    change(notes);
    this.#grants.set(id, notes);
  }
}

function authenticationKey({ client, way }: Pick<AuthenticationNotes, 'client' | 'way'>): string {
  return `${way} ${client}`;
}

/** The grant that something is noted of. */
interface Subject {
  readonly id: string;
  readonly clientId: string;
}
