import { hash } from 'node:crypto';
import { CODE_LETTERS } from '../core/letter-code.ts';

const GROUPS = 2;
const LETTERS_IN_GROUP = 3;

/**
 * The code by which a person checks that the appliance in front of them is the one that the hub shows, such as
 * `KFD-WQX`. It is a hash of the client_id and not secret. The hub chooses the client_id at random, so an appliance
 * can't choose its code: two appliances have the same code with a probability of 1 in 64 million.
 */
export function comparisonCode(clientId: string): string {
  let rest = BigInt(`0x${hash('sha256', `latchkey comparison code ${clientId}`, 'hex')}`);
  const letters = Array.from({ length: GROUPS * LETTERS_IN_GROUP }, () => {
    const letter = CODE_LETTERS.charAt(Number(rest % BigInt(CODE_LETTERS.length)));
    rest /= BigInt(CODE_LETTERS.length);
    return letter;
  }).join('');
  return `${letters.slice(0, LETTERS_IN_GROUP)}-${letters.slice(LETTERS_IN_GROUP)}`;
}

/** Whether typed text is the appliance's code, in any case, with or without the hyphen. */
export function isComparisonCode(typed: string, clientId: string): boolean {
  const plain = (code: string) => code.replaceAll(/[\s\p{Dash_Punctuation}]/gu, '').toUpperCase();
  return plain(typed) === plain(comparisonCode(clientId));
}
