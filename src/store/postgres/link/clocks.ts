import type { Clock, Instant } from '../../../core/clock.ts';
import { Secret } from '../../../core/secret.ts';
import type { Statements } from '../database/sql.ts';

/** From this on a change of the database's clock counts as a setting of it, in ms. */
const CLOCK_STEP = 10_000;

/**
 * Translates instants between the boot clocks of the hubs of a site, by the database's clock: the table `clocks` has
 * its time at uptime 0 of each boot. So every hub knows the age of what another one, or itself before a restart, has
 * stored, however wrong its own wall clock is.
 */
export class SiteClocks {
  readonly #clock: Clock;
  readonly #read: <Result>(work: (sql: Statements) => Promise<Result>) => Promise<Result>;
  /** The database's time at uptime 0 of each boot, in ms since 1970. */
  readonly #bootedAt = new Map<string, number>();
  /** Boots that no hub of the site has measured, such as those of a restored backup. */
  readonly #unknown = new Set(['']);

  /** @param read runs a read of the database */
  constructor(clock: Clock, read: <Result>(work: (sql: Statements) => Promise<Result>) => Promise<Result>) {
    this.#clock = clock;
    this.#read = read;
  }

  /**
   * Measures this boot against the database's clock, writes that, and reads what the other hubs have measured.
   * @returns whether the database's clock was set forward since the last time: what was read before seems too young
   */
  async synchronize(sql: Statements): Promise<boolean> {
    const before = this.#clock.now();
    const former = this.#bootedAt.get(before.boot);
    const [row] = await sql.all<{ now: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
    );
    if (row === undefined) return false;
    const uptime = (before.uptime + this.#clock.now().uptime) / 2;
    const bootedAt = row.now - uptime;
    await sql.run(
      `INSERT INTO clocks (boot, booted_at, updated) VALUES ($1, to_timestamp($2::float8 / 1000), clock_timestamp())
       ON CONFLICT (boot) DO UPDATE SET booted_at = excluded.booted_at, updated = excluded.updated`,
      ...[before.boot, bootedAt],
    );
    await this.load(sql);
    // As it was measured: the database rounds it.
    this.#bootedAt.set(before.boot, bootedAt);
    return former !== undefined && bootedAt - former > CLOCK_STEP;
  }

  /** Reads what the hubs have measured. */
  async load(sql: Statements): Promise<void> {
    const rows = await sql.all<{ boot: string; bootedAt: number }>(
      'SELECT boot, (extract(epoch FROM booted_at) * 1000)::float8 AS "bootedAt" FROM clocks',
    );
    for (const { boot, bootedAt } of rows) this.#bootedAt.set(boot, bootedAt);
  }

  /** A time of the database, in ms since 1970, on this hub's boot clock. */
  toUptime(time: number): number {
    return time - (this.#bootedAt.get(this.#clock.now().boot) ?? 0);
  }

  /**
   * As {@link translate}, for a value that was just read: a hub that started a moment ago may have written it.
   * @param sql the transaction in which it was read, if it was in one
   * @throws Failure `store_unreadable`
   */
  async translateRead<Value>(value: Value, sql?: Statements): Promise<Value> {
    const unknown = this.#unknownBoots(value);
    if (unknown.size > 0) {
      // A hub writes what it has measured before anything else.
      if (sql === undefined) await this.#read((read) => this.load(read));
      else await this.load(sql);
      for (const each of unknown) if (!this.#bootedAt.has(each)) this.#unknown.add(each);
    }
    return this.translate(value);
  }

  /** A value with all its instants on this hub's boot clock; those of unknown boots stay as they are. */
  translate<Value>(value: Value): Value {
    const { boot } = this.#clock.now();
    const own = this.#bootedAt.get(boot);
    return mapInstants(value, (instant) => {
      const bootedAt = this.#bootedAt.get(instant.boot);
      if (own === undefined || bootedAt === undefined || instant.boot === boot) return instant;
      const time = bootedAt + instant.uptime;
      return { boot, uptime: Math.round(time - own), wall: Math.round(time) };
    }) as Value;
  }

  #unknownBoots(value: unknown): ReadonlySet<string> {
    const boots = new Set<string>();
    mapInstants(value, (instant) => {
      if (!this.#bootedAt.has(instant.boot) && !this.#unknown.has(instant.boot)) boots.add(instant.boot);
      return instant;
    });
    return boots;
  }
}

function isInstant(value: object): value is Instant {
  return 'boot' in value && 'uptime' in value && 'wall' in value;
}

/** A copy of a value with other instants. */
function mapInstants(value: unknown, map: (instant: Instant) => Instant): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Secret) return value;
  if (Array.isArray(value)) return value.map((each) => mapInstants(each, map));
  if (isInstant(value)) return map(value);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapInstants(each, map)]));
}
