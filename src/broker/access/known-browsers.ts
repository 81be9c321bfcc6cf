import type { Random } from '../../core/random.ts';
import { Secret } from '../../core/secret.ts';
import { hmacSha256, timingSafeEqualText } from '../../system/secret-hash.ts';

/** Bytes of the key and of a browser's id. */
const KEY_BYTES = 32;
const ID_BYTES = 16;

/**
 * The browsers that have signed in before. Each has a cookie: an id, and its MAC under a key of the hub's and the setup code, so
 * that nothing is stored for it and another setup code ends it. The cookie opens nothing; it lets the wrong codes of this browser
 * count apart from everybody else's. The key is random, so that nobody can find the setup code by trying which one fits a cookie.
 */
export class KnownBrowsers {
  readonly #key: string;
  readonly #random: Random;

  /** @param key as {@link generateKey} makes it */
  constructor(key: string, random: Random) {
    this.#key = key;
    this.#random = random;
  }

  static generateKey(random: Random): string {
    return random.token(KEY_BYTES);
  }

  /** A cookie for a browser that has not signed in before. @param setupCode as it is now */
  createCookie(setupCode: string): Secret {
    const id = this.#random.token(ID_BYTES);
    return new Secret(`${id}.${this.#mac(id, setupCode)}`);
  }

  /** The id of a browser; null where it has not signed in by this setup code. @param cookie as the browser sent it */
  verifyCookie(cookie: string, setupCode: string): string | null {
    const [id = '', mac = ''] = cookie.split('.', 2);
    return timingSafeEqualText(mac, this.#mac(id, setupCode)) ? id : null;
  }

  #mac(id: string, setupCode: string): string {
    return hmacSha256(this.#key, `${setupCode} ${id}`);
  }
}
