/** The longest time of a write, in ms: as slow as a worn SD card. */
export const MAX_WRITE_DELAY_MS = 300;

/** The seed for the write times; set `LATCHKEY_TEST_SEED` for other times. */
export function storeSeed(): number {
  return Number(process.env['LATCHKEY_TEST_SEED'] ?? 1);
}

/**
 * The environment of a daemon whose store writes slowly.
 * @param options more options for Node
 */
export function slowStoreEnv(options = ''): Readonly<Record<string, string>> {
  const preload = new URL('./slow-store-preload.ts', import.meta.url);
  return {
    NODE_OPTIONS: `--import=${preload} ${options}`.trim(),
    LATCHKEY_TEST_SEED: String(storeSeed()),
  };
}
