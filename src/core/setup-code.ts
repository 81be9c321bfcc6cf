import { letterCode } from './letter-code.ts';
import type { Random } from './random.ts';

/** 51 bits, for a code that lasts, and that can't be tried often. */
const SETUP_CODE = letterCode(3);

/** The hub's setup code, as a person reads it: `WDJB-MJHT-BCDF`. */
export function newSetupCode(random: Pick<Random, 'below'>): string {
  return SETUP_CODE.make(random);
}

/** What a person typed, in any case, with or without spaces and hyphens, as {@link newSetupCode} writes it; null for no code. */
export function readSetupCode(typed: string): string | null {
  return SETUP_CODE.read(typed);
}
