import { RingBuffer } from '../memory/bounded-collections.ts';

/** What the portal hands out that must not show up in anybody's log. */
export type SecretKind = 'state' | 'code' | 'access_token' | 'refresh_token';

interface IssuedSecret {
  readonly kind: SecretKind;
  readonly value: string;
}

/** How many states, codes and tokens are remembered. */
const MAX_ISSUED = 200_000;

/** Remembers what was issued, so that a test can search logs, databases and pages for it. */
export class IssuedSecrets {
  readonly #issued = new RingBuffer<IssuedSecret>(MAX_ISSUED);

  /** Notes a secret and gives it back. */
  record(kind: SecretKind, value: string): string {
    this.#issued.push({ kind, value });
    return value;
  }

  /** The secrets of these kinds, or of all; the oldest first. */
  list(kinds: readonly SecretKind[]): string[] {
    const wanted = this.#issued.values().filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
    return wanted.map(({ value }) => value);
  }
}
