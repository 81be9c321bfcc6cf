// Has a regular expression equal no text: in `toMatchObject` vitest takes it for an object without members, which matches
// whatever was found. `expect.stringMatching` is what was meant.
import { expect } from 'vitest';

const ADDED = Symbol.for('latchkey.test.equality');

if (!Reflect.has(globalThis, ADDED)) {
  Reflect.set(globalThis, ADDED, true);
  expect.addEqualityTesters([
    (found, expected) => (expected instanceof RegExp && !(found instanceof RegExp) ? false : undefined),
  ]);
}
