import { Recent } from '../memory/bounded.ts';
import type { BearerTokens, TokenClaims } from './bearer-tokens.ts';

/** What the portal hands out that must not show up in anybody's log. */
export type SecretKind = 'state' | 'code' | 'access_token' | 'refresh_token';

interface Issued {
  readonly kind: SecretKind;
  readonly value: string;
}

/** How many states, codes and pairs of tokens are remembered. */
const MAX_ISSUED = 200_000;

/** Remembers what was issued, so that a test can search logs, databases and pages for it. */
export class IssuedSecrets {
  readonly #tokens: BearerTokens;
  /** Of tokens the claims, which take a third of the room: the tokens are made of them again. */
  readonly #issued = new Recent<Issued | TokenClaims>(MAX_ISSUED);

  constructor(tokens: BearerTokens) {
    this.#tokens = tokens;
  }

  /** Notes a secret and gives it back. */
  note(kind: 'state' | 'code', value: string): string {
    this.#issued.push({ kind, value });
    return value;
  }

  /** Notes the access and the refresh token with these claims. */
  noteTokens(claims: TokenClaims): void {
    this.#issued.push(claims);
  }

  /** The secrets of these kinds, or of all; the oldest first. */
  of(kinds: readonly SecretKind[]): string[] {
    const wanted = (kind: SecretKind) => kinds.length === 0 || kinds.includes(kind);
    return this.#issued.values().flatMap((one) => {
      if ('kind' in one) return wanted(one.kind) ? [one.value] : [];
      const pair = (['access_token', 'refresh_token'] as const).filter(wanted);
      return pair.map((kind) => this.#tokens.seal(kind, one));
    });
  }
}
