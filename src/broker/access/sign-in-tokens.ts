import { sha256 } from '../../system/compare.ts';

/** How long one is good, in ms. */
export const TOKEN_LIFETIME = 600_000;
/** So many are good at a time; of more the oldest is dropped. */
const MOST = 5;

/** The tokens of one-time sign-in addresses, in memory alone. Times are ms on the boot clock. */
export class SignInTokens {
  /** By their hashes, the oldest first: when they end. */
  readonly #ends = new Map<string, number>();

  add(token: string, now: number): void {
    this.#ends.set(sha256(token), now + TOKEN_LIFETIME);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MOST && oldest !== undefined) this.#ends.delete(oldest);
  }

  /** Uses a token up. @returns whether it was good */
  take(token: string, now: number): boolean {
    const hash = sha256(token);
    const end = this.#ends.get(hash);
    this.#ends.delete(hash);
    return end !== undefined && now < end;
  }

  clear(): void {
    this.#ends.clear();
  }
}
