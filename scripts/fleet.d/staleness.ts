import { TOKEN_LIFETIME_MS } from './portal.ts';

/** The number of a grant, and when an appliance first requests its token (null if none does). */
interface Watched {
  readonly number: number;
  readonly asksFrom: number | null;
}

/** Records how long grants are without a valid token while both the portal and the hub are running. */
export class Staleness {
  /** When the current access token expires, in ms. */
  readonly #ends: Float64Array;
  /** Until when the hub or the portal was off, in ms. */
  readonly #excused: Float64Array;
  /** When the last grant without a valid token got one, in ms; null if all always had one. */
  lastFresh: number | null = null;
  /** The longest time without a valid token, in ms: of all grants, and of those whose token an appliance requests. */
  longest = 0;
  longestAsked = 0;
  /** The grants that had no valid token for longer than a token lifetime. */
  readonly starved = new Set<number>();

  constructor(grants: number) {
    this.#ends = new Float64Array(grants);
    this.#excused = new Float64Array(grants);
  }

  /** Adds a grant whose token was obtained at `obtained`, in ms. */
  begin(number: number, obtained: number): void {
    this.#ends[number] = obtained + TOKEN_LIFETIME_MS;
  }

  /** The hub or the portal was off until now. */
  excuse({ number }: Pick<Watched, 'number'>, now: number): void {
    this.#excused[number] = now;
  }

  excuseAll(now: number): void {
    this.#excused.fill(now);
  }

  refreshed(watched: Watched, now: number): void {
    if (this.#without(watched, now) > 0) this.lastFresh = now;
    this.#ends[watched.number] = now + TOKEN_LIFETIME_MS;
  }

  /** How many grants have no valid token at the end. */
  stale(all: Iterable<Watched>, now: number): number {
    let stale = 0;
    for (const watched of all) if (this.#without(watched, now) > 0) stale += 1;
    return stale;
  }

  /** For how long a grant has had no valid token, in ms. */
  #without({ number, asksFrom }: Watched, now: number): number {
    const without = now - Math.max(this.#ends[number] ?? 0, this.#excused[number] ?? 0);
    if (now <= (this.#ends[number] ?? 0)) return 0;
    this.longest = Math.max(this.longest, without);
    if (asksFrom !== null) this.longestAsked = Math.max(this.longestAsked, without);
    if (without > TOKEN_LIFETIME_MS) this.starved.add(number);
    return without;
  }
}
