import { expect, test } from 'vitest';
import { checkPassphrase, normalizePassphrase } from '../../src/core/backup-contents.ts';

const LONGEST = 'four words at random '.repeat(49).slice(0, 1024);

test.each(['four words at random', 'Ümläute sind gut!', '🐎🔋📎🐎🔋📎🐎🔋📎🦄🌧️🪑', LONGEST])(
  'the passphrase %j is accepted',
  (text) => {
    expect(checkPassphrase(text).reveal()).toBe(text.normalize('NFC'));
  },
);

test.each(['', 'short', 'elevenchars', 'aaaaaaaaaaaaaaaaaaaaaaaa', 'abababababababababab', `${LONGEST}x`])(
  'the weak or overlong passphrase %j is refused and not repeated in the message',
  (text) => {
    expect(() => checkPassphrase(text)).toThrow(expect.objectContaining({ code: 'passphrase_weak' }));
    if (text === '') return;
    expect(() => checkPassphrase(text)).not.toThrow(new RegExp(text));
  },
);

test('a passphrase is the same in composed and decomposed Unicode form', () => {
  expect(normalizePassphrase('u\u0308ber Stock und Stein').reveal()).toBe(
    normalizePassphrase('\u00fcber Stock und Stein').reveal(),
  );
});

test('a passphrase that opens a backup is only checked not to be empty', () => {
  expect(normalizePassphrase('short').reveal()).toBe('short');
  expect(() => normalizePassphrase('')).toThrow(expect.objectContaining({ code: 'passphrase_weak' }));
});
