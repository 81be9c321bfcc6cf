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

/** Records kept. */
const MAX_RECORDS = 10_000;

/** A refresh before this part of the access token's lifetime has passed is early. */
const MIN_REFRESH_AGE_RATIO = 0.5;

export const CLIENT_AUTHENTICATION_METHODS = ['form', 'authorization header', 'assertion', 'none'] as const;
export type ClientAuthenticationMethod = (typeof CLIENT_AUTHENTICATION_METHODS)[number];

type OfGrant<What> = { readonly what: What; readonly client: string; readonly grant: string };

/**
 * What a correct client never does: it presents a used refresh token or an exchanged code again, begins a refresh before
 * another one was answered, refreshes the newest tokens early, fails to authenticate, or polls a device code too fast.
 */
type Misuse =
  | OfGrant<'reused'>
  | OfGrant<'codeRepeated'>
  | OfGrant<'overlapping'>
  | OfGrant<'early'>
  /** `client`: the registered one that the request named, or null. */
  | { readonly what: 'notAuthenticated'; readonly client: string | null; readonly way: ClientAuthenticationMethod }
  | { readonly what: 'fastPoll'; readonly client: string };

type MisuseOf<What> = Extract<Misuse, { readonly what: What }>;

/** How often the same misuse happened. */
export interface MisuseRecord<Kind extends Misuse = Misuse> {
  readonly misuse: Kind;
  readonly count: number;
  /** Of early refreshes: the age of the tokens at the earliest of them, in seconds. */
  readonly earliest: number;
  /** Of failed authentications: why the last one failed. */
  readonly reason?: string;
}

/** The grant that a record is about. */
interface GrantReference {
  readonly id: string;
  readonly clientId: string;
}

/**
 * Records what a correct client of the portal never does. It does not influence responses. With a state file the
 * records survive a restart, so that a test can read them after it has stopped the portal.
 */
export class ClientAudit {
  readonly #records = new BoundedMap<MisuseRecord>(MAX_RECORDS);

  /** @param saved the records of the state file */
  constructor(saved: readonly MisuseRecord[]) {
    for (const record of saved) this.#records.set(JSON.stringify(record.misuse), record);
  }

  /** The counts over all grants. */
  get observations(): Observations {
    const sum = (what: Misuse['what']) => this.records(what).reduce((total, { count }) => total + count, 0);
    return {
      refreshTokensRepeated: sum('reused'),
      codesRepeated: sum('codeRepeated'),
      overlappingRefreshes: sum('overlapping'),
      fastPolls: sum('fastPoll'),
    };
  }

  /** Counts a misuse of a grant by its client. */
  recordMisuse(what: 'reused' | 'codeRepeated' | 'overlapping', { id, clientId }: GrantReference): void {
    this.#count({ what, client: clientId, grant: id });
  }

  /**
   * Counts a refresh of a grant's newest tokens, if it is early.
   * @param age of the tokens, in seconds
   * @param lifetime of the access token, in seconds
   */
  recordRefresh({ id, clientId }: GrantReference, age: number, lifetime: number): void {
    if (age < MIN_REFRESH_AGE_RATIO * lifetime) this.#count({ what: 'early', client: clientId, grant: id }, age);
  }

  recordFailedAuthentication(
    client: string | null,
    way: ClientAuthenticationMethod,
    { description, reason = description }: { readonly description: string; readonly reason?: string },
  ): void {
    this.#count({ what: 'notAuthenticated', client, way }, 0, reason);
  }

  /** Counts a poll with a device code that came before the interval was over. */
  recordFastPoll(client: string): void {
    this.#count({ what: 'fastPoll', client });
  }

  all(): MisuseRecord[] {
    return this.#records.values();
  }

  records<What extends Misuse['what']>(what: What): MisuseRecord<MisuseOf<What>>[] {
    return this.all().filter((record): record is MisuseRecord<MisuseOf<What>> => record.misuse.what === what);
  }

  #count(misuse: Misuse, age = 0, reason?: string): void {
    const key = JSON.stringify(misuse);
    const { count, earliest } = this.#records.get(key) ?? { count: 0, earliest: age };
    this.#records.set(key, {
      misuse,
      count: count + 1,
      earliest: Math.min(earliest, age),
      ...(reason !== undefined && { reason }),
    });
  }
}
