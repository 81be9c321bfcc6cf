import { defineConfig } from 'vitest/config';

/** What can be told only when all other tests have run. */
export default defineConfig({
  cacheDir: '../../.cache/vitest-after',
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    testTimeout: 120_000,
  },
});
