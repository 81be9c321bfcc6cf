import { expect, test } from 'vitest';
import { checkPassphrase, normalizePassphrase } from '../../src/core/backup-state.ts';

const LONGEST = 'four words at random '.repeat(49).slice(0, 1024);

test.each(['four words at random', 'Ümläute sind gut!', '🐎🔋📎🐎🔋📎🐎🔋📎🦄🌧️🪑', LONGEST])('%j is taken', (text) => {
  expect(checkPassphrase(text).reveal()).toBe(text.normalize('NFC'));
});

test.each(['', 'short', 'elevenchars', 'aaaaaaaaaaaaaaaaaaaaaaaa', 'abababababababababab', `${LONGEST}x`])(
  'of %j no copy is made, and it is not repeated',
  (text) => {
    expect(() => checkPassphrase(text)).toThrow(expect.objectContaining({ code: 'passphrase_weak' }));
    if (text === '') return;
    expect(() => checkPassphrase(text)).not.toThrow(new RegExp(text));
  },
);

test('however a terminal composes its characters, a passphrase is the same', () => {
  expect(normalizePassphrase('u\u0308ber Stock und Stein').reveal()).toBe(
    normalizePassphrase('\u00fcber Stock und Stein').reveal(),
  );
});

test('a passphrase that opens a copy is not judged, as long as there is one', () => {
  expect(normalizePassphrase('short').reveal()).toBe('short');
  expect(() => normalizePassphrase('')).toThrow(expect.objectContaining({ code: 'passphrase_weak' }));
});
