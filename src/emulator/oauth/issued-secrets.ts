import { RingBuffer } from '../bounded-collections.ts';

/** Values that the portal issues and that must not appear in any log. */
export type SecretKind =
  | 'state'
  | 'code'
  | 'device_code'
  | 'user_code'
  | 'access_token'
  | 'refresh_token'
  | 'registration_token';

interface IssuedSecret {
  readonly kind: SecretKind;
  readonly value: string;
}

/** States, codes and tokens kept. */
const MAX_ISSUED = 200_000;

/** Records what was issued, so that a test can search logs, databases and pages for it. */
export class IssuedSecrets {
  readonly #issued = new RingBuffer<IssuedSecret>(MAX_ISSUED);

  /** Records a secret and returns it. */
  record(kind: SecretKind, value: string): string {
    this.#issued.push({ kind, value });
    return value;
  }

  /** The secrets of these kinds, or of all kinds if none is named; oldest first. */
  list(kinds: readonly SecretKind[]): string[] {
    const selected = this.#issued.values().filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
    return selected.map(({ value }) => value);
  }
}
