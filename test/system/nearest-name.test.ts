import { expect, test } from 'vitest';
import { didYouMean } from '../../src/system/did-you-mean.ts';

const NAMES = [
  'host',
  'port',
  'frontendPort',
  'tls',
  'tokenLifetime',
  'refreshLifetime',
  'on_start',
  'scope',
  'redirectUrl',
  'redirectUris',
];

test.each([
  ['tokenLifeTime', 'tokenLifetime'],
  ['token-liftime', 'tokenLifetime'],
  ['hots', 'host'],
  ['onStart', 'on_start'],
  ['redirect_uri', 'redirectUris'],
])('an error about the unknown name %s suggests %s', (typed, name) => {
  expect(didYouMean(typed, NAMES)).toBe(` (did you mean ${name}?)`);
});

test.each(['colour', 'ssl', 'nope', 'a', '', 'x'.repeat(1_000_000)])(
  'an error about the unknown name %.10s suggests no other name',
  (typed) => {
    expect(didYouMean(typed, NAMES)).toBe('');
    expect(didYouMean(typed, [])).toBe('');
  },
);
