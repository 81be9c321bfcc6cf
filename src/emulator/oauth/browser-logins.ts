import { systemRandom } from '../../system/random.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { BoundedMap } from '../bounded-collections.ts';

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
  readonly #port: () => string;

  /** @param port of the frontend origin: browsers share cookies between the ports of a host */
  constructor(port: () => string) {
    this.#port = port;
  }

  /** @param path of the pages that share the login @param isSecure whether the frontend origin uses TLS @returns the `Set-Cookie` header */
  issueCookie(login: BrowserLogin, path: string, isSecure: boolean): string {
    const value = systemRandom.token(32);
    this.#logins.set(sha256(value), login);
    return `${this.#name}=${value}; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  }

  /** @param header the `Cookie` header @returns the login, or null if the browser is not known */
  find(header: string | undefined): BrowserLogin | null {
    return this.#logins.get(sha256(this.#cookieValue(header))) ?? null;
  }

  /** Ends the login of a browser. @param header the `Cookie` header @returns the `Set-Cookie` header */
  end(header: string | undefined, path: string): string {
    this.#logins.delete(sha256(this.#cookieValue(header)));
    return `${this.#name}=; Path=${path}; Max-Age=0`;
  }

  /** The name of the session cookie. */
  get #name(): string {
    return `emulator_login_${this.#port()}`;
  }

  /** The value of the cookie; empty if there is none. */
  #cookieValue(header = ''): string {
    const pairs = header.split(';').map((pair) => pair.trim());
    return pairs.find((pair) => pair.startsWith(`${this.#name}=`))?.slice(this.#name.length + 1) ?? '';
  }
}
