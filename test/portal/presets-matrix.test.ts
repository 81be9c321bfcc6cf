import { describe } from 'vitest';
import { allClouds } from '../../src/clouds/catalogue.ts';
import { testEndingTokens } from './ending-tokens-scenario.ts';
import { REPRESENTATIVES, testPresets } from './preset-scenarios.ts';

// The others go through the same scenarios in test/release/portal, and each of their deviations is a row of
// preset-deviations.test.ts.
describe('the presets that stand for all', () => {
  testPresets(allClouds().filter(({ name }) => REPRESENTATIVES.includes(name)));
  testEndingTokens(allClouds().filter(({ name }) => name === 'netatmo'));
});
