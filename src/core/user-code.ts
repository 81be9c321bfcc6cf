import { letterCode } from './letter-code.ts';
import type { Random } from './random.ts';

/** 34 bits, for a code that is good for minutes and can't be tried often. */
const USER_CODE = letterCode(2);

/** A user code of the device flow, as a person reads it: `WDJB-MJHT`. */
export function newUserCode(random: Pick<Random, 'below'>): string {
  return USER_CODE.make(random);
}

/** What a person typed, in any case, with or without spaces and hyphens, as {@link newUserCode} writes it; null for no code. */
export function readUserCode(typed: string): string | null {
  return USER_CODE.read(typed);
}
