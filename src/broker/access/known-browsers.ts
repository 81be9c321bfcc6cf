import type { Random } from '../../core/random.ts';
import { Secret } from '../../core/secret.ts';
import { hmacSha256, timingSafeEqualText } from '../../system/secret-hash.ts';

/** Bytes of the key and of a browser id. */
const KEY_BYTES = 32;
const ID_BYTES = 16;

/**
 * Recognizes browsers that have signed in before. Each has a cookie: an id, and its MAC under a random key of the hub
 * and the setup code. So nothing is stored for a browser, and rotating the setup code invalidates all cookies. The
 * cookie grants no access: it only lets this browser's wrong codes be counted separately from all others. Because the
 * key is random, nobody can find the setup code by trying which one matches a cookie.
 */
export class KnownBrowsers {
  readonly #key: string;
  readonly #random: Random;

  /** @param key from {@link generateKey} */
  constructor(key: string, random: Random) {
    this.#key = key;
    this.#random = random;
  }

  static generateKey(random: Random): string {
    return random.token(KEY_BYTES);
  }

  /** A cookie for a browser that has not signed in before. @param setupCode the current one */
  createCookie(setupCode: string): Secret {
    const id = this.#random.token(ID_BYTES);
    return new Secret(`${id}.${this.#mac(id, setupCode)}`);
  }

  /** The id of a browser; null if the cookie is invalid for this setup code. @param cookie as the browser sent it */
  verifyCookie(cookie: string, setupCode: string): string | null {
    const [id = '', mac = ''] = cookie.split('.', 2);
    return timingSafeEqualText(mac, this.#mac(id, setupCode)) ? id : null;
  }

  /**
   * The CSRF token of a user whom a reverse proxy has signed in. No cookie's MAC equals it, because no setup code has
   * lower-case letters.
   */
  proxiedUserToken(user: string): string {
    return hmacSha256(this.#key, `proxied user: ${user}`);
  }

  #mac(id: string, setupCode: string): string {
    return hmacSha256(this.#key, `${setupCode} ${id}`);
  }
}
