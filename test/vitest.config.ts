import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    exclude: ['after/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
