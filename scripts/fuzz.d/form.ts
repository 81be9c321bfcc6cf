import type { Dice } from './dice.ts';
import { latin1, mutated } from './mutations.ts';

/** A form with these members; one that is not good has a member twice, or none, or a thousand, or one thing wrong. */
export function formOf(dice: Dice, members: Readonly<Record<string, string>>, good: boolean): string {
  const pairs = Object.entries(members).map(([name, text]) => `${name}=${encodeURIComponent(latin1(text))}`);
  if (good) return pairs.join('&');
  if (dice.chance(0.1)) pairs.push(dice.of(pairs, ''));
  if (dice.chance(0.1)) pairs.splice(dice.below(pairs.length), 1);
  if (dice.chance(0.02)) pairs.push(...Array.from({ length: 900 }, (_, index) => `a${index}=1`));
  const text = pairs.join(dice.chance(0.02) ? ';' : '&');
  return dice.chance(0.25) ? mutated(dice, text) : text;
}
