import type { Random } from './random.ts';

/** No vowels, so that no words appear, and no letters that are easily confused (RFC 8628, 6.1). */
export const CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const GROUP_LENGTH = 4;
/** Longer input is rejected: even with spaces and hyphens a code has fewer characters. */
const MAX_TYPED_LENGTH = 64;

/** A code that a person reads in one place and types in another: groups of four letters, separated by hyphens. */
interface LetterCodeFormat {
  generate(random: Pick<Random, 'below'>): string;
  /**
   * Normalizes typed input, in any case, with or without spaces and hyphens, to the form of {@link generate}; null if
   * it is no code.
   */
  parse(typed: string): string | null;
  /** How many letters a code has. */
  readonly length: number;
}

/** What was typed, without spaces and hyphens. */
export function typedLetters(typed: string): string {
  return typed.replaceAll(/[\s\p{Dash_Punctuation}]/gu, '');
}

/** The hub's setup code, such as `WDJB-MJHT-BCDF-GHJK`: 69 bits, because it is long-lived and nobody may guess it. */
export const SETUP_CODE_FORMAT = letterCodeFormat(4);

/**
 * A user code of the device flow, such as `WDJB-MJHT`: 34 bits, because it is valid for minutes; rate limits prevent
 * guessing.
 */
export const USER_CODE_FORMAT = letterCodeFormat(2);

/** @param groups how many groups of four letters; each has 17 bits */
function letterCodeFormat(groups: number): LetterCodeFormat {
  const length = groups * GROUP_LENGTH;
  return {
    length,
    generate: (random) =>
      hyphenate(Array.from({ length }, () => CODE_LETTERS.charAt(random.below(CODE_LETTERS.length))).join('')),
    parse(typed) {
      if (typed.length > MAX_TYPED_LENGTH) return null;
      const letters = typedLetters(typed).toUpperCase();
      return letters.length === length && [...letters].every((letter) => CODE_LETTERS.includes(letter))
        ? hyphenate(letters)
        : null;
    },
  };
}

function hyphenate(letters: string): string {
  const groups = Math.ceil(letters.length / GROUP_LENGTH);
  return Array.from({ length: groups }, (_, index) =>
    letters.slice(index * GROUP_LENGTH, (index + 1) * GROUP_LENGTH),
  ).join('-');
}
