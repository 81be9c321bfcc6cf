// Corrects what vitest takes for equal, because it compares the members that an object shows, and some show none:
// - A regular expression is equal to no text, not to every value, in `toMatchObject`. Use `expect.stringMatching`.
// - Secrets are equal if they reveal the same text, not always.
import { expect } from 'vitest';
import { Secret } from '../../src/core/secret.ts';

const ADDED = Symbol.for('latchkey.test.equality');

if (!Reflect.has(globalThis, ADDED)) {
  Reflect.set(globalThis, ADDED, true);
  expect.addEqualityTesters([
    (found, expected) => (expected instanceof RegExp && !(found instanceof RegExp) ? false : undefined),
    (found, expected) =>
      found instanceof Secret && expected instanceof Secret ? found.reveal() === expected.reveal() : undefined,
  ]);
}
