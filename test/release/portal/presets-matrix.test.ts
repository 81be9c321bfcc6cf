import { describe } from 'vitest';
import { allClouds } from '../../../src/clouds/catalogue.ts';
import { testEndingTokens } from '../../portal/ending-tokens-scenario.ts';
import { REPRESENTATIVES, testPresets } from '../../portal/preset-scenarios.ts';

describe('the presets that others stand for', () => {
  testPresets(allClouds().filter(({ name }) => !REPRESENTATIVES.includes(name)));
  testEndingTokens(
    allClouds().filter(({ name, settings }) => settings.refresh_ends_access_token && name !== 'netatmo'),
  );
});
