import type { Random } from './random.ts';

/** No vowels, so that no word comes out, and none that is easily taken for another (RFC 8628, 6.1). */
export const CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const GROUP_LENGTH = 4;
/** Longer ones are not looked at: with all its spaces and hyphens a code has fewer characters. */
const MAX_TYPED_LENGTH = 64;

/** A code of letters that a person reads at one place and types at another, in groups of four with hyphens between. */
interface LetterCodeFormat {
  generate(random: Pick<Random, 'below'>): string;
  /** What a person typed, in any case, with or without spaces and hyphens, as {@link generate} writes it; null for no code. */
  parse(typed: string): string | null;
}

/** The hub's setup code, such as `WDJB-MJHT-BCDF`: 51 bits, for a code that lasts, and that can't be tried often. */
export const SETUP_CODE_FORMAT = letterCodeFormat(3);

/** A user code of the device flow, such as `WDJB-MJHT`: 34 bits, for a code that is good for minutes and can't be tried often. */
export const USER_CODE_FORMAT = letterCodeFormat(2);

/** @param groups of four letters; each has 17 bits */
function letterCodeFormat(groups: number): LetterCodeFormat {
  const length = groups * GROUP_LENGTH;
  return {
    generate: (random) =>
      hyphenate(Array.from({ length }, () => CODE_LETTERS.charAt(random.below(CODE_LETTERS.length))).join('')),
    parse(typed) {
      if (typed.length > MAX_TYPED_LENGTH) return null;
      const letters = typed.replaceAll(/[\s\p{Dash_Punctuation}]/gu, '').toUpperCase();
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
