import { defineConfig } from 'vitest/config';

/** Tests that must run after all others. */
export default defineConfig({
  cacheDir: '../../.cache/vitest-after',
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    testTimeout: 120_000,
  },
});
