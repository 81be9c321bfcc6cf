import { defineConfig } from 'vitest/config';

export default defineConfig({
  cacheDir: '../.cache/vitest',
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    exclude: ['after/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time is spent waiting, for tokens to age and polls to come due.
    maxWorkers: 4,
  },
});
