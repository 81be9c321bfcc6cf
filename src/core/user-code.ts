import type { Random } from './random.ts';

/** No vowels, so that no word comes out, and none that is easily taken for another (RFC 8628, 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
/** 20 to the power of 8: 34 bits, for a code that is good for minutes and can't be tried often. */
const LENGTH = 8;
/** Longer ones are not looked at: with all its spaces and hyphens a code has fewer characters. */
const LONGEST_TYPED = 64;

/** A user code of the device flow, as a person reads it: `WDJB-MJHT`. */
export function newUserCode(random: Pick<Random, 'below'>): string {
  return written(Array.from({ length: LENGTH }, () => LETTERS.charAt(random.below(LETTERS.length))).join(''));
}

/** What a person typed, in any case, with or without spaces and hyphens, as {@link newUserCode} writes it; null for no code. */
export function readUserCode(typed: string): string | null {
  if (typed.length > LONGEST_TYPED) return null;
  const letters = typed.replaceAll(/[\s\p{Dash_Punctuation}]/gu, '').toUpperCase();
  return letters.length === LENGTH && [...letters].every((letter) => LETTERS.includes(letter))
    ? written(letters)
    : null;
}

function written(letters: string): string {
  return `${letters.slice(0, LENGTH / 2)}-${letters.slice(LENGTH / 2)}`;
}
