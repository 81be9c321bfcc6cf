import { Secret } from '../core/secret.ts';
import type { PageSession, SetupAccess, SignIn } from '../core/setup-access.ts';
import type { Store } from '../core/store.ts';
import { sameSecret, sha256 } from '../system/compare.ts';
import type { Surroundings } from './surroundings.ts';

/** How long somebody stays signed in, in ms. */
const SESSION = 12 * 3_600_000;

/** The setup code, and who is signed in. */
export class SetupAccessBook implements SetupAccess {
  readonly #surroundings: Surroundings;
  readonly #sessions = new Map<string, PageSession>();
  #code: string;

  private constructor(surroundings: Surroundings, code: string) {
    this.#surroundings = surroundings;
    this.#code = code;
  }

  static async load(store: Store, surroundings: Surroundings): Promise<SetupAccessBook> {
    const kept = await store.setting('setup_code');
    const code = kept ?? surroundings.random.token(9);
    if (kept === null) await store.saveSetting('setup_code', code);
    return new SetupAccessBook(surroundings, code);
  }

  async signIn(code: string): Promise<SignIn> {
    return sameSecret(code, this.#code) ? { kind: 'signed_in', session: this.#open() } : { kind: 'wrong' };
  }

  async redeem(): Promise<PageSession | null> {
    return null;
  }

  session(cookie: string): PageSession | null {
    return this.#sessions.get(sha256(cookie)) ?? null;
  }

  async signOut({ cookie }: PageSession): Promise<void> {
    this.#sessions.delete(sha256(cookie.reveal()));
  }

  #open(): PageSession {
    const { random } = this.#surroundings;
    const session = { cookie: new Secret(random.token(32)), csrf: random.token(24), lifetime: SESSION / 1000 };
    this.#sessions.set(sha256(session.cookie.reveal()), session);
    return session;
  }
}
