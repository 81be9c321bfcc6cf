import type { Random } from './random.ts';

/** No vowels, so that no word comes out, and none that is easily taken for another (RFC 8628, 6.1). */
export const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const GROUP = 4;
/** Longer ones are not looked at: with all its spaces and hyphens a code has fewer characters. */
const LONGEST_TYPED = 64;

/** A code of letters that a person reads at one place and types at another, in groups of four with hyphens between. */
export interface LetterCode {
  make(random: Pick<Random, 'below'>): string;
  /** What a person typed, in any case, with or without spaces and hyphens, as {@link make} writes it; null for no code. */
  read(typed: string): string | null;
}

/** @param groups of four letters; each has 17 bits */
export function letterCode(groups: number): LetterCode {
  const length = groups * GROUP;
  return {
    make: (random) => inGroups(Array.from({ length }, () => LETTERS.charAt(random.below(LETTERS.length))).join('')),
    read(typed) {
      if (typed.length > LONGEST_TYPED) return null;
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
