import { appendBounded } from '../bounded-collections.ts';

/** Values that the portal issues and that must not appear in any log. */
export const SECRET_KINDS = [
  'state',
  'code',
  'device_code',
  'user_code',
  'access_token',
  'refresh_token',
  'id_token',
  'registration_token',
] as const;
export type SecretKind = (typeof SECRET_KINDS)[number];

/** States, codes and tokens kept. */
const MAX_ISSUED = 200_000;

/** Records what was issued, so that a test can search logs, databases and pages for it. */
export class IssuedSecrets {
  readonly #issued: { readonly kind: SecretKind; readonly value: string }[] = [];

  /** Records a secret and returns it. */
  record(kind: SecretKind, value: string): string {
    appendBounded(this.#issued, { kind, value }, MAX_ISSUED);
    return value;
  }

  recordTokens(body: { readonly [Kind in 'access_token' | 'refresh_token' | 'id_token']?: string }): void {
    for (const kind of ['access_token', 'refresh_token', 'id_token'] as const)
      if (body[kind] !== undefined) this.record(kind, body[kind]);
  }

  /** The secrets of these kinds, or of all kinds if none is named, each once; oldest first. */
  list(kinds: readonly SecretKind[]): string[] {
    const selected = this.#issued.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
    return [...new Set(selected.map(({ value }) => value))];
  }
}
