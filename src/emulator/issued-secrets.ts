import { Recent } from './bounded.ts';

/** What the portal hands out that must not show up in anybody's log. */
export type SecretKind = 'state' | 'code' | 'access_token' | 'refresh_token';

/** How many issued secrets are remembered. */
const REMEMBERED = 200_000;

/** Remembers what was issued, so that a test can search logs, databases and pages for it. */
export class IssuedSecrets {
  readonly #issued = new Recent<{ readonly kind: SecretKind; readonly value: string }>(REMEMBERED);

  /** Notes a secret and gives it back. */
  note(kind: SecretKind, value: string): string {
    this.#issued.push({ kind, value });
    return value;
  }

  /** The secrets of these kinds, or of all; the oldest first. */
  of(kinds: readonly SecretKind[]): string[] {
    return this.#issued
      .values()
      .filter((one) => kinds.length === 0 || kinds.includes(one.kind))
      .map((one) => one.value);
  }
}
