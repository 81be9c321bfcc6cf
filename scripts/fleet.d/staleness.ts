import { TOKEN_LIFETIME_MS } from './portal.ts';

/** Which grant it is, and whether an appliance asks for its token. */
interface Watched {
  readonly number: number;
  readonly asksFrom: number | null;
}

/** Watches how long grants are without a token that lives, where portal and hub were both there to get one. */
export class Staleness {
  /** When the token at hand ends, in ms. */
  readonly #ends: Float64Array;
  /** Before this nobody could have got another one, in ms. */
  readonly #excused: Float64Array;
  /** When the last one that had none got one, in ms; null where all had one always. */
  lastFresh: number | null = null;
  /** The longest that one had none, in ms, and of those that an appliance asks for. */
  longest = 0;
  longestAsked = 0;
  /** The grants that had none for longer than a token lives. */
  readonly starved = new Set<number>();

  constructor(grants: number) {
    this.#ends = new Float64Array(grants);
    this.#excused = new Float64Array(grants);
  }

  /** A grant that is taken into the fleet has a token that was obtained at a time, in ms. */
  begin(number: number, obtained: number): void {
    this.#ends[number] = obtained + TOKEN_LIFETIME_MS;
  }

  /** The hub was off until now, or the portal. */
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

  /** At the end of all: how many have no token that lives. */
  stale(all: Iterable<Watched>, now: number): number {
    let stale = 0;
    for (const watched of all) if (this.#without(watched, now) > 0) stale += 1;
    return stale;
  }

  /** For how long a grant has been without, in ms. */
  #without({ number, asksFrom }: Watched, now: number): number {
    const without = now - Math.max(this.#ends[number] ?? 0, this.#excused[number] ?? 0);
    if (now <= (this.#ends[number] ?? 0)) return 0;
    this.longest = Math.max(this.longest, without);
    if (asksFrom !== null) this.longestAsked = Math.max(this.longestAsked, without);
    if (without > TOKEN_LIFETIME_MS) this.starved.add(number);
    return without;
  }
}
