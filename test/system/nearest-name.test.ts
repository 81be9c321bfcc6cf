import { expect, test } from 'vitest';
import { didYouMean } from '../../src/system/did-you-mean.ts';

const NAMES = ['host', 'port', 'frontendPort', 'tls', 'tokenLifetime', 'refreshLifetime', 'on_start', 'scope'];

test.each([
  ['tokenLifeTime', 'tokenLifetime'],
  ['token_lifetime', 'tokenLifetime'],
  ['token-liftime', 'tokenLifetime'],
  ['refreshLifetimes', 'refreshLifetime'],
  ['frontendport', 'frontendPort'],
  ['hots', 'host'],
  ['prot', 'port'],
  ['onStart', 'on_start'],
])('%s is taken for %s', (typed, name) => {
  expect(didYouMean(typed, NAMES)).toBe(` (did you mean ${name}?)`);
});

test.each(['colour', 'ssl', 'nope', 'a', '', 'x'.repeat(1_000_000)])('%.10s is taken for none', (typed) => {
  expect(didYouMean(typed, NAMES)).toBe('');
  expect(didYouMean(typed, [])).toBe('');
});
