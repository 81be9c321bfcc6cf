import { createHash } from 'node:crypto';
import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';

/** The session cookie at the frontend origin. */
const COOKIE_NAME = 'emulator_login';
/** Browsers remembered. */
const MAX_BROWSERS = 1000;

/** The login of a user with a browser. */
export interface BrowserLogin {
  readonly user: string;
  /** Milliseconds since 1970. */
  readonly loggedInAt: number;
}

/** Remembers, by a session cookie, which user has logged in with a browser, until the emulator ends or is reset. */
export class BrowserLogins {
  /** By the hash of the cookie. */
  readonly #logins = new BoundedMap<BrowserLogin>(MAX_BROWSERS);

  /** @param path of the pages that share the login @param isSecure whether the frontend origin uses TLS @returns the `Set-Cookie` header */
  issueCookie(login: BrowserLogin, path: string, isSecure: boolean): string {
    const value = systemRandom.token(32);
    this.#logins.set(hash(value), login);
    return `${COOKIE_NAME}=${value}; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  }

  /** @param header the `Cookie` header @returns the login, or null if the browser is not known */
  find(header: string | undefined): BrowserLogin | null {
    return this.#logins.get(hash(cookieValue(header))) ?? null;
  }

  /** Ends the login of a browser. @param header the `Cookie` header @returns the `Set-Cookie` header */
  end(header: string | undefined, path: string): string {
    this.#logins.delete(hash(cookieValue(header)));
    return `${COOKIE_NAME}=; Path=${path}; Max-Age=0`;
  }

  clear(): void {
    this.#logins.clear();
  }
}

/** The value of the cookie; empty if there is none. */
function cookieValue(header = ''): string {
  const pairs = header.split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${COOKIE_NAME}=`))?.slice(COOKIE_NAME.length + 1) ?? '';
}

function hash(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}
