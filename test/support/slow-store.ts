import type { Store } from '../../src/core/store.ts';

/** How long a write takes at the most, in ms: a worn card is as slow. */
export const MAX_WRITE_DELAY_MS = 300;

/** What writes. */
export const STORE_WRITES: ReadonlySet<string> = new Set<keyof Store>([
  'saveSetting',
  'addAppliance',
  'updateAppliance',
  'removeAppliance',
  'beginAttempt',
  'endAttempt',
  'markTokenRejected',
  'replaceGrant',
  'forgetGrant',
  'savePairing',
  'completePairing',
  'saveSession',
  'endSession',
  'saveInvite',
  'removeInvite',
]);

/** What decides how long writes take; `LATCHKEY_TEST_SEED` makes other choices. */
export function storeSeed(): number {
  return Number(process.env['LATCHKEY_TEST_SEED'] ?? 1);
}

/**
 * What a daemon's environment holds so that its store's writes are slow.
 * @param options beside it, for Node
 */
export function slowStoreEnv(options = ''): Readonly<Record<string, string>> {
  const preload = new URL('./slow-store-preload.ts', import.meta.url);
  return {
    NODE_OPTIONS: `--import=${preload} ${options}`.trim(),
    LATCHKEY_TEST_SEED: String(storeSeed()),
  };
}

/** The same store, each write of which begins only when the promise that `wait` gives has ended. */
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
