import type { Store } from '../../src/core/store.ts';

/** The methods of a part of the store. */
type Methods<Part> = {
  [Name in keyof Part]: Part[Name] extends (...args: never[]) => unknown ? Name : never;
}[keyof Part] &
  string;

/** A part of the store that has methods of its own. */
type Part = 'settings' | 'registry' | 'grants' | 'pairings' | 'sessions' | 'invites';

/** A method of the store, such as `grants.replace`. */
export type StoreMethod = 'saveLogin' | { [Name in Part]: `${Name}.${Methods<Store[Name]>}` }[Part];
const PARTS: readonly PropertyKey[] = [
  ...(['settings', 'registry', 'grants', 'pairings', 'sessions', 'invites'] satisfies Part[]),
  ...['history', 'usage'],
];

const WRITES: ReadonlySet<string> = new Set<StoreMethod>([
  'saveLogin',
  'settings.save',
  'registry.save',
  'grants.beginAttempt',
  'grants.beginImport',
  'grants.endAttempt',
  'grants.rejectAccessToken',
  'grants.replace',
  'grants.forget',
  'pairings.save',
  'sessions.save',
  'sessions.end',
  'invites.save',
  'invites.remove',
]);

/**
 * The same store, of which each call goes through `around`.
 * @param around gets the method's name, such as `grants.replace`, and calls it
 */
export function aroundCalls<S extends Store>(store: S, around: (name: string, call: () => unknown) => unknown): S {
  const wrap = <Target extends object>(target: Target, prefix: string): Target =>
    new Proxy(target, {
      get: (object, key) => {
        const member: unknown = Reflect.get(object, key, object);
        if (prefix === '' && PARTS.includes(key)) return wrap(member as object, `${String(key)}.`);
        if (typeof member !== 'function') return member;
        const call = (args: unknown[]) => Reflect.apply(member, object, args);
        return (...args: unknown[]) =>
          typeof key === 'symbol' ? call(args) : around(`${prefix}${key}`, () => call(args));
      },
    });
  return wrap(store, '');
}

/** The same store; each write begins only when the promise that `wait` returns has settled. */
export function delayWrites<S extends Store>(store: S, wait: () => Promise<void>): S {
  return aroundCalls(store, (name, call) => (WRITES.has(name) ? wait().then(call) : call()));
}

/** The same store, or a part of it, with other methods. */
export function withMethods<Target extends object>(target: Target, methods: Partial<Target>): Target {
  return new Proxy(target, {
    get: (object, name) => {
      const member: unknown = Reflect.get(methods, name) ?? Reflect.get(object, name, object);
      return typeof member === 'function' ? member.bind(object) : member;
    },
  });
}
