import { describe } from 'vitest';
import { presets } from '../../../src/portal/presets/catalogue.ts';
import { testEndingTokens } from '../../portal/ending-tokens-scenario.ts';
import { REPRESENTATIVES, testPresets } from '../../portal/preset-scenarios.ts';

describe('the presets that others stand for', () => {
  testPresets(presets().filter(({ name }) => !REPRESENTATIVES.includes(name)));
  testEndingTokens(presets().filter(({ name, settings }) => settings.refresh_ends_access_token && name !== 'netatmo'));
});
