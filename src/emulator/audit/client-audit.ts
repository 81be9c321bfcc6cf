import { BoundedMap } from '../memory/bounded-collections.ts';

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
const MAX_RECORDS = 10_000;

/** A refresh before this part of the token's lifetime had passed came far too early. */
const MIN_REFRESH_AGE_RATIO = 0.5;

/** What one client did wrong with one grant. Counts. */
export interface GrantAuditRecord {
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

const ZERO_COUNTS = { reused: 0, overlapping: 0, early: 0, earliest: null, codeRepeated: 0 };

/** How a client tried to authenticate. */
export const CLIENT_AUTHENTICATION_METHODS = ['form', 'authorization header', 'none'] as const;
export type ClientAuthenticationMethod = (typeof CLIENT_AUTHENTICATION_METHODS)[number];

/** Failed client authentications of one kind. */
export interface FailedAuthenticationRecord {
  /** The registered client that was named, or null. */
  readonly client: string | null;
  readonly way: ClientAuthenticationMethod;
  count: number;
}

/**
 * Watches what clients do, and notes what a good client of the portal never does. It decides nothing. What it noted
 * outlives the process where there is a state file: a test that stops the portal asks for it afterwards.
 */
export class ClientAudit {
  readonly #grants = new BoundedMap<GrantAuditRecord>(MAX_RECORDS);
  readonly #failedAuthentications = new BoundedMap<FailedAuthenticationRecord>(MAX_RECORDS);

  /** @param kept what was noted before */
  constructor(kept: {
    readonly notes?: readonly GrantAuditRecord[];
    readonly authentications?: readonly FailedAuthenticationRecord[];
  }) {
    for (const one of kept.notes ?? []) this.#grants.set(one.grant, one);
    for (const one of kept.authentications ?? []) this.#failedAuthentications.set(failedAuthenticationKey(one), one);
  }

  /** The counts over all grants. */
  get observations(): Observations {
    const all = this.#grants.values();
    const sum = (count: (notes: GrantAuditRecord) => number) => all.reduce((total, notes) => total + count(notes), 0);
    return {
      refreshTokensRepeated: sum(({ reused }) => reused),
      codesRepeated: sum(({ codeRepeated }) => codeRepeated),
      overlappingRefreshes: sum(({ overlapping }) => overlapping),
    };
  }

  /** A client has done one of these with a grant. */
  recordMisuse(what: 'reused' | 'codeRepeated' | 'overlapping', grant: GrantReference): void {
    this.#updateRecord(grant, (notes) => {
      notes[what] += 1;
    });
  }

  /**
   * The newest tokens of a grant were refreshed.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  recordRefresh(grant: GrantReference, age: number, lifetime: number): void {
    if (age >= MIN_REFRESH_AGE_RATIO * lifetime) return;
    this.#updateRecord(grant, (notes) => {
      notes.early += 1;
      notes.earliest = Math.min(notes.earliest ?? age, age);
    });
  }

  recordFailedAuthentication(client: string | null, way: ClientAuthenticationMethod): void {
    const key = failedAuthenticationKey({ client, way });
    const notes = this.#failedAuthentications.get(key) ?? { client, way, count: 0 };
    notes.count += 1;
    this.#failedAuthentications.set(key, notes);
  }

  grants(): GrantAuditRecord[] {
    return this.#grants.values();
  }

  failedAuthentications(): FailedAuthenticationRecord[] {
    return this.#failedAuthentications.values();
  }

  /** Forgets everything. */
  clear(): void {
    this.#grants.clear();
    this.#failedAuthentications.clear();
  }

  #updateRecord({ id, clientId }: GrantReference, change: (notes: GrantAuditRecord) => void): void {
    const notes = this.#grants.get(id) ?? { client: clientId, grant: id, ...ZERO_COUNTS };
    change(notes);
    this.#grants.set(id, notes);
  }
}

function failedAuthenticationKey({ client, way }: Pick<FailedAuthenticationRecord, 'client' | 'way'>): string {
  return `${way} ${client}`;
}

/** The grant that something is noted of. */
interface GrantReference {
  readonly id: string;
  readonly clientId: string;
}
