import type { Store } from '../../src/core/store.ts';

/** The longest time of a write, in ms: as slow as a worn SD card. */
export const MAX_WRITE_DELAY_MS = 300;

/** The methods that write. */
export const STORE_WRITES: ReadonlySet<string> = new Set<keyof Store>([
  'saveSetting',
  'saveRegistry',
  'beginAttempt',
  'beginImport',
  'endAttempt',
  'markTokenRejected',
  'replaceGrant',
  'forgetGrant',
  'savePairing',
  'saveLogin',
  'saveSession',
  'endSession',
  'saveInvite',
  'removeInvite',
]);

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

/** The same store; each write begins only when the promise that `wait` returns has settled. */
export function delayWrites<S extends Store>(store: S, wait: () => Promise<void>): S {
  return new Proxy(store, {
    get: (object, name) => {
      const member: unknown = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      if (!STORE_WRITES.has(String(name))) return member.bind(object);
      return async (...args: unknown[]) => {
        await wait();
        return Reflect.apply(member, object, args);
      };
    },
  });
}
