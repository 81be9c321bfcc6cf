import { DAY, utcDay } from '../clock.ts';

/** The tokens that an appliance got on one day. */
export interface DayCount {
  /** The day (UTC) as the number of days since 1970-01-01. */
  readonly day: number;
  readonly count: number;
}

/** The tokens that an appliance got. */
export interface TokenUsage {
  /** When it got the last one, in ms since 1970. */
  readonly last: number;
  /** Their number on each day, the earliest first. Days without a token are left out. */
  readonly days: readonly DayCount[];
  /** The same for each connection, by its id; left out in usage of before that was recorded. */
  readonly connections?: Readonly<Record<string, Omit<TokenUsage, 'connections'>>>;
}

/** How many tokens an appliance got, by UTC days that include the current one. */
export interface TokenCounts {
  readonly today: number;
  readonly last14Days: number;
}

/** Why the way in which an appliance uses its tokens is pointed out. */
export type UnusualUsage = 'never_served' | 'silent' | 'asks_often';

/** Where the usage is stored. */
export interface UsageStore {
  /** What this hub has issued, by the appliances' ids, without what can't be read. @throws Failure as {@link Store} */
  own(): Promise<ReadonlyMap<string, TokenUsage>>;
  /** The tokens that each other hub of a site has issued. */
  ofOthers(): Promise<ReadonlyMap<string, readonly TokenUsage[]>>;
  /**
   * Replaces the usage of those appliances that still exist; all or nothing.
   * @param usage by the appliances' ids
   * @throws Failure as {@link Store}
   */
  save(usage: ReadonlyMap<string, TokenUsage>): Promise<void>;
  /** From now on writes for a connection may also write the pending usage of its appliances. */
  setSource(waiting: PendingUsage): void;
}

/** Usage that waits for another write of its connection, so that it shares its transaction. */
export interface PendingUsage {
  /** What can be written now, by the ids of the connection's appliances. @param connection its id */
  pending(connection: string): ReadonlyMap<string, TokenUsage>;
  /** Reports that what {@link pending} returned last is written. */
  markWritten(connection: string): void;
}

/** How many days are counted, with the current one. */
const COUNTED_DAYS = 14;
/** An appliance that got no token for so long is silent, in ms. */
const SILENCE = 7 * DAY;
/** How many requests are unusual during one lifetime of a token. */
const FREQUENT_REQUESTS = 100;

/** Adds later tokens to earlier ones, and drops the days that no longer count. @param today see {@link DayCount} */
export function mergeUsage(earlier: TokenUsage | null, later: TokenUsage, today: number): TokenUsage {
  const counts = new Map<number, number>();
  for (const { day, count } of [...(earlier?.days ?? []), ...later.days]) {
    if (isCounted(day, today)) counts.set(day, (counts.get(day) ?? 0) + count);
  }
  const days = [...counts].map(([day, count]) => ({ day, count })).sort((a, b) => a.day - b.day);
  const { connections = {} } = later;
  const merged = Object.entries(connections).map(([id, each]) => {
    return [id, mergeUsage(earlier?.connections?.[id] ?? null, each, today)] as const;
  });
  const all = { ...earlier?.connections, ...Object.fromEntries(merged) };
  return { last: later.last, days, ...(Object.keys(all).length > 0 && { connections: all }) };
}

/** @param today see {@link DayCount} */
export function countTokens(days: readonly DayCount[], today: number): TokenCounts {
  const sum = (isIncluded: (day: number) => boolean) =>
    days.reduce((total, { day, count }) => (isIncluded(day) ? total + count : total), 0);
  return { today: sum((day) => day === today), last14Days: sum((day) => isCounted(day, today)) };
}

/** A wrong clock may have counted days that are still to come; they do not count. */
function isCounted(day: number, today: number): boolean {
  return day > today - COUNTED_DAYS && day <= today;
}

/** What {@link unusualUsage} depends on. Times in ms. */
export interface UsageFacts {
  /** The true time, in ms since 1970; null if it is not known. */
  readonly now: number | null;
  /** When the appliance got its last token, in ms since 1970; null if it never got one. */
  readonly last: number | null;
  /** How many tokens it got today (UTC). */
  readonly today: number;
  /** The lifetime of an access token. */
  readonly lifetime: number;
  /** For how long the appliance has been able to get tokens: since the hub was started, or since the login. */
  readonly available: number;
}

/**
 * Whether an appliance uses its tokens in an unusual way; null if it does not.
 *
 * - `never_served`: it has not got a token yet.
 * - `silent`: it got tokens before, but none for a week and for the lifetime of a token. It is not silent while it has
 *   had no time to ask again, for example after the hub was switched off.
 * - `asks_often`: today it asked more than a hundred times for each lifetime of a token that has passed since midnight,
 *   and more than a hundred times.
 */
export function unusualUsage({ now, last, today, lifetime, available }: UsageFacts): UnusualUsage | null {
  if (last === null) return 'never_served';
  if (now === null) return null;
  if (now - last > Math.max(SILENCE, lifetime) && available >= Math.min(lifetime, DAY)) return 'silent';
  const sinceMidnight = now - utcDay(now) * DAY;
  return today > FREQUENT_REQUESTS * Math.max(1, sinceMidnight / lifetime) ? 'asks_often' : null;
}
