// Makes a regular expression equal to no text: in `toMatchObject` vitest treats it as an object without members, which
// matches any value. Use `expect.stringMatching`.
import { expect } from 'vitest';

const ADDED = Symbol.for('latchkey.test.equality');

if (!Reflect.has(globalThis, ADDED)) {
  Reflect.set(globalThis, ADDED, true);
  expect.addEqualityTesters([
    (found, expected) => (expected instanceof RegExp && !(found instanceof RegExp) ? false : undefined),
  ]);
}
