import { messageOf } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import type { PageSession, SetupAccess, SignIn } from '../core/setup-access.ts';
import { newSetupCode, readSetupCode } from '../core/setup-code.ts';
import type { Store } from '../core/store.ts';
import { sameSecret } from '../system/compare.ts';
import { PageSessions } from './page-sessions.ts';
import { SignInTokens, TOKEN_LIFETIME } from './sign-in-tokens.ts';
import type { Surroundings } from './surroundings.ts';
import { WrongCodes } from './wrong-codes.ts';

/** The name of the setup code among the store's settings. */
const SETTING = 'setup_code';
/** Of the token of a one-time address: few, so that its QR code is one of few modules. */
const TOKEN_BYTES = 16;

/** What is known of signing in and is in no store. */
export class SignInMemory {
  readonly tokens = new SignInTokens();
  readonly wrongCodes = new WrongCodes();
}

type AccessStore = Pick<Store, 'setting' | 'saveSetting'>;
type AccessSurroundings = Pick<Surroundings, 'clock' | 'random' | 'log'>;

/** The setup code, who is signed in by it, and who has tried to be. */
export class SetupAccessBook implements SetupAccess {
  readonly #store: AccessStore;
  readonly #surroundings: AccessSurroundings;
  readonly #sessions: PageSessions;
  /** To be handed to a hub that takes this one's place. */
  readonly memory: SignInMemory;
  #code: string;

  private constructor(
    store: AccessStore,
    surroundings: AccessSurroundings,
    sessions: PageSessions,
    memory: SignInMemory,
    code: string,
  ) {
    this.#store = store;
    this.#surroundings = surroundings;
    this.#sessions = sessions;
    this.memory = memory;
    this.#code = code;
  }

  /** Reads the setup code, or makes it at the first start. @param memory of the hub before this one in the same process */
  static async load(
    store: AccessStore,
    surroundings: AccessSurroundings,
    memory = new SignInMemory(),
  ): Promise<SetupAccessBook> {
    const kept = readSetupCode((await store.setting(SETTING)) ?? '');
    const code = kept ?? newSetupCode(surroundings.random);
    if (kept === null) await keep(code, store, surroundings);
    const sessions = await PageSessions.load(store, surroundings, code);
    return new SetupAccessBook(store, surroundings, sessions, memory, code);
  }

  /** Whether somebody had found the way to the page before this run: else the log says where it begins. */
  get wasFound(): boolean {
    return this.#sessions.wereAny;
  }

  /** The setup code, as it is to be typed. */
  get code(): Secret {
    return new Secret(this.#code);
  }

  async signIn(typed: string, from: string): Promise<SignIn> {
    const { clock, log } = this.#surroundings;
    const { wrongCodes } = this.memory;
    const now = clock.now().uptime;
    const locked = wrongCodes.lockedFor(from, now);
    if (locked > 0) return { kind: 'locked', retryAfter: Math.ceil(locked / 1000) };
    if (!sameSecret(readSetupCode(typed) ?? '', this.#code)) {
      const { locked: lockedNow, tell } = wrongCodes.count(from, now);
      if (tell !== null) log.warn('too many wrong setup codes', { address: tell.address, count: tell.count });
      return lockedNow > 0 ? { kind: 'locked', retryAfter: Math.ceil(lockedNow / 1000) } : { kind: 'wrong' };
    }
    wrongCodes.forgive(from);
    log.info('signed in', { address: from });
    return { kind: 'signed_in', session: await this.#sessions.begin() };
  }

  /** The token of a new one-time address, and for how many ms it is good. */
  issueToken(): { readonly token: Secret; readonly lifetime: number } {
    const { clock, random } = this.#surroundings;
    const token = random.token(TOKEN_BYTES);
    this.memory.tokens.add(token, clock.now().uptime);
    return { token: new Secret(token), lifetime: TOKEN_LIFETIME };
  }

  async redeem(token: string): Promise<PageSession | null> {
    const { clock, log } = this.#surroundings;
    if (!this.memory.tokens.take(token, clock.now().uptime)) return null;
    log.info('signed in', { by: 'one-time address' });
    return this.#sessions.begin();
  }

  session(cookie: string): PageSession | null {
    return this.#sessions.find(cookie);
  }

  signOut(session: PageSession): Promise<void> {
    return this.#sessions.end(session);
  }

  /**
   * Puts another setup code in place; whoever is signed in is no longer, and no one-time address is good any more.
   * @throws Failure `store_unwritable`: nothing has changed then
   */
  async rotate(): Promise<void> {
    const { random, log } = this.#surroundings;
    const code = newSetupCode(random);
    await this.#store.saveSetting(SETTING, code);
    this.#code = code;
    this.memory.tokens.clear();
    await this.#sessions.endAll(code);
    log.warn('setup code rotated', { next: '"latchkey setup-code" shows it' });
  }
}

/** A hub whose disk is full starts all the same; its code is another one after the next start. */
async function keep(code: string, store: AccessStore, { log }: AccessSurroundings): Promise<void> {
  try {
    await store.saveSetting(SETTING, code);
  } catch (error) {
    log.error('store could not be written', { error: messageOf(error) });
  }
}
