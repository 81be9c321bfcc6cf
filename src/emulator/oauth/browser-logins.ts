import { createHash } from 'node:crypto';
import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';

/** The session cookie at the frontend origin. */
const COOKIE_NAME = 'emulator_login';
/** Browsers remembered. */
const MAX_BROWSERS = 1000;

/** Remembers, by a session cookie, which user has logged in with a browser, until the emulator ends or is reset. */
export class BrowserLogins {
  /** User names, by the hash of the cookie. */
  readonly #users = new BoundedMap<string>(MAX_BROWSERS);

  /** @param path of the pages that share the login @param isSecure whether the frontend origin uses TLS @returns the `Set-Cookie` header */
  issueCookie(user: string, path: string, isSecure: boolean): string {
    const value = systemRandom.token(32);
    this.#users.set(hash(value), user);
    return `${COOKIE_NAME}=${value}; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  }

  /** @param header the `Cookie` header @returns the user's name, or null if the browser is not known */
  findUser(header: string | undefined): string | null {
    const pairs = (header ?? '').split(';').map((pair) => pair.trim());
    const value = pairs.find((pair) => pair.startsWith(`${COOKIE_NAME}=`))?.slice(COOKIE_NAME.length + 1);
    return value === undefined ? null : (this.#users.get(hash(value)) ?? null);
  }

  clear(): void {
    this.#users.clear();
  }
}

function hash(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}
