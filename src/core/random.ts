/** A source of randomness, passed in so that tests can control it. */
export interface Random {
  /** Cryptographically strong random bytes, base64url-encoded. */
  token(bytes: number): string;
  /** A version 4 UUID. */
  uuid(): string;
  /** A cryptographically strong, uniformly distributed whole number from 0 (included) to `limit` (excluded). */
  below(limit: number): number;
  /** A number from 0 (included) to 1 (excluded), for jitter. */
  fraction(): number;
}
