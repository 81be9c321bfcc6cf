import { defineConfig } from 'vitest/config';

export default defineConfig({
  cacheDir: '../.cache/vitest',
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    exclude: ['after/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
