import type { Random } from './random.ts';

/** No vowels, so that no word comes out, and none that is easily taken for another (RFC 8628, 6.1). */
export const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const GROUP = 4;
/** Longer ones are not looked at: with all its spaces and hyphens a code has fewer characters. */
const MAX_TYPED = 64;

/** A code of letters that a person reads at one place and types at another, in groups of four with hyphens between. */
interface LetterCode {
  make(random: Pick<Random, 'below'>): string;
  /** What a person typed, in any case, with or without spaces and hyphens, as {@link make} writes it; null for no code. */
  read(typed: string): string | null;
}

/** The hub's setup code, such as `WDJB-MJHT-BCDF`: 51 bits, for a code that lasts, and that can't be tried often. */
export const SETUP_CODE = letterCode(3);

/** A user code of the device flow, such as `WDJB-MJHT`: 34 bits, for a code that is good for minutes and can't be tried often. */
export const USER_CODE = letterCode(2);

/** @param groups of four letters; each has 17 bits */
function letterCode(groups: number): LetterCode {
  const length = groups * GROUP;
  return {
    make: (random) => inGroups(Array.from({ length }, () => LETTERS.charAt(random.below(LETTERS.length))).join('')),
    read(typed) {
      if (typed.length > MAX_TYPED) return null;
      const letters = typed.replaceAll(/[\s\p{Dash_Punctuation}]/gu, '').toUpperCase();
      return letters.length === length && [...letters].every((letter) => LETTERS.includes(letter))
        ? inGroups(letters)
        : null;
    },
  };
}

function inGroups(letters: string): string {
  const groups = Math.ceil(letters.length / GROUP);
  return Array.from({ length: groups }, (_, index) => letters.slice(index * GROUP, (index + 1) * GROUP)).join('-');
}
