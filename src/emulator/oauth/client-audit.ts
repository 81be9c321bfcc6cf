import { BoundedMap } from '../bounded-collections.ts';

/** Counts of the client audit: what a correct client never does. */
export interface Observations {
  /** Refresh tokens presented by their own client after they had been presented before. */
  refreshTokensRepeated: number;
  /** Authorization codes presented by their own client after they had been exchanged. */
  codesRepeated: number;
  /** Refreshes that began before another one of the same grant was answered. */
  overlappingRefreshes: number;
  /** Polls with a device code that came before the interval was over. */
  fastPolls: number;
}

/** Records kept of grants, and of failed authentications. */
const MAX_RECORDS = 10_000;

/** A refresh before this part of the access token's lifetime has passed is early. */
const MIN_REFRESH_AGE_RATIO = 0.5;

/** What a client did wrong with one grant, as counts. */
export interface GrantAuditRecord {
  readonly client: string;
  readonly grant: string;
  /** How often a refresh token was presented again. */
  reused: number;
  /** How often a refresh began before another one was answered. */
  overlapping: number;
  /** How often the newest tokens were refreshed early. */
  early: number;
  /** Age of the tokens at the earliest of the early refreshes, in seconds; null if there was none. */
  earliest: number | null;
  /** How often the code of the grant was presented again after its exchange. */
  codeRepeated: number;
}

const ZERO_COUNTS = { reused: 0, overlapping: 0, early: 0, earliest: null, codeRepeated: 0 };

/** How a client tried to authenticate. */
export const CLIENT_AUTHENTICATION_METHODS = ['form', 'authorization header', 'assertion', 'none'] as const;
export type ClientAuthenticationMethod = (typeof CLIENT_AUTHENTICATION_METHODS)[number];

/** Failed authentications of one client by one method. */
export interface FailedAuthenticationRecord {
  /** The registered client that the request named, or null. */
  readonly client: string | null;
  readonly way: ClientAuthenticationMethod;
  count: number;
}

/** Polls of one client with device codes that came before the interval was over. */
export interface FastPollRecord {
  readonly client: string;
  count: number;
}

/**
 * Records what a correct client of the portal never does. It does not influence responses. With a state file the
 * records survive a restart, so that a test can read them after it has stopped the portal.
 */
export class ClientAudit {
  readonly #grants = new BoundedMap<GrantAuditRecord>(MAX_RECORDS);
  readonly #failedAuthentications = new BoundedMap<FailedAuthenticationRecord>(MAX_RECORDS);
  readonly #fastPolls = new BoundedMap<FastPollRecord>(MAX_RECORDS);

  /** @param saved the records of the state file */
  constructor(saved: {
    readonly notes?: readonly GrantAuditRecord[];
    readonly authentications?: readonly FailedAuthenticationRecord[];
    readonly fastPolls?: readonly FastPollRecord[];
  }) {
    for (const record of saved.notes ?? []) this.#grants.set(record.grant, record);
    for (const record of saved.authentications ?? [])
      this.#failedAuthentications.set(failedAuthenticationKey(record), record);
    for (const record of saved.fastPolls ?? []) this.#fastPolls.set(record.client, record);
  }

  /** The counts over all grants. */
  get observations(): Observations {
    const all = this.#grants.values();
    const sum = (count: (record: GrantAuditRecord) => number) =>
      all.reduce((total, record) => total + count(record), 0);
    return {
      refreshTokensRepeated: sum(({ reused }) => reused),
      codesRepeated: sum(({ codeRepeated }) => codeRepeated),
      overlappingRefreshes: sum(({ overlapping }) => overlapping),
      fastPolls: this.#fastPolls.values().reduce((total, { count }) => total + count, 0),
    };
  }

  /** Counts a misuse of a grant by its client. */
  recordMisuse(what: 'reused' | 'codeRepeated' | 'overlapping', grant: GrantReference): void {
    this.#updateRecord(grant, (record) => {
      record[what] += 1;
    });
  }

  /**
   * Counts a refresh of a grant's newest tokens, if it is early.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  recordRefresh(grant: GrantReference, age: number, lifetime: number): void {
    if (age >= MIN_REFRESH_AGE_RATIO * lifetime) return;
    this.#updateRecord(grant, (record) => {
      record.early += 1;
      record.earliest = Math.min(record.earliest ?? age, age);
    });
  }

  recordFailedAuthentication(client: string | null, way: ClientAuthenticationMethod): void {
    const key = failedAuthenticationKey({ client, way });
    const record = this.#failedAuthentications.get(key) ?? { client, way, count: 0 };
    record.count += 1;
    this.#failedAuthentications.set(key, record);
  }

  /** Counts a poll with a device code that came before the interval was over. */
  recordFastPoll(client: string): void {
    const record = this.#fastPolls.get(client) ?? { client, count: 0 };
    record.count += 1;
    this.#fastPolls.set(client, record);
  }

  grants(): GrantAuditRecord[] {
    return this.#grants.values();
  }

  failedAuthentications(): FailedAuthenticationRecord[] {
    return this.#failedAuthentications.values();
  }

  fastPolls(): FastPollRecord[] {
    return this.#fastPolls.values();
  }

  /** Removes all records. */
  clear(): void {
    this.#grants.clear();
    this.#failedAuthentications.clear();
    this.#fastPolls.clear();
  }

  #updateRecord({ id, clientId }: GrantReference, change: (record: GrantAuditRecord) => void): void {
    const record = this.#grants.get(id) ?? { client: clientId, grant: id, ...ZERO_COUNTS };
    change(record);
    this.#grants.set(id, record);
  }
}

function failedAuthenticationKey({ client, way }: Pick<FailedAuthenticationRecord, 'client' | 'way'>): string {
  return `${way} ${client}`;
}

/** The grant that a record is about. */
interface GrantReference {
  readonly id: string;
  readonly clientId: string;
}
