import { messageOf } from '../../core/failure.ts';
import { SETUP_CODE_FORMAT } from '../../core/letter-code.ts';
import { Secret } from '../../core/secret.ts';
import type {
  BrowserInfo,
  BrowserSession,
  SetupAccess,
  SignedInBrowser,
  SignInResult,
} from '../../core/setup-access.ts';
import type { Store } from '../../core/store.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import { KnownBrowsers } from './known-browsers.ts';
import { LoginThrottle, loginSourceForAddress, loginSourceForBrowser } from './login-throttle.ts';
import { PageSessions } from './page-sessions.ts';

/** The store's setting with the setup code. */
const SETUP_CODE_SETTING = 'setup_code';
/** The store's setting with the key of the known browsers' cookies. */
const BROWSER_KEY_SETTING = 'known_browsers_key';
/** Bytes of the token of a one-time address: few, so that its QR code has few modules. */
const TOKEN_BYTES = 16;
/** How long a token is valid, in ms. */
const TOKEN_LIFETIME = 600_000;
/** The most tokens that are valid at once; beyond that the oldest is dropped. */
const MAX_TOKENS = 5;

/** The tokens of one-time addresses, only in memory. Times are ms on the boot clock. */
class SignInTokens {
  /** Expiry by hash, the oldest first. */
  readonly #expiries = new Map<string, number>();

  add(token: string, now: number): void {
    this.#expiries.set(sha256(token), now + TOKEN_LIFETIME);
    const [oldest] = this.#expiries.keys();
    if (this.#expiries.size > MAX_TOKENS && oldest !== undefined) this.#expiries.delete(oldest);
  }

  /** Consumes a token. @returns whether it was valid */
  consume(token: string, now: number): boolean {
    const hash = sha256(token);
    const end = this.#expiries.get(hash);
    this.#expiries.delete(hash);
    return end !== undefined && now < end;
  }

  clear(): void {
    this.#expiries.clear();
  }
}

/** The part of the sign-in state that no store holds. */
export class SignInState {
  readonly tokens = new SignInTokens();
  readonly loginThrottle = new LoginThrottle();
}

type AccessStore = Pick<Store, 'setting' | 'saveSetting'>;
type AccessEnvironment = Pick<Environment, 'clock' | 'random' | 'log'>;

/** The setup code, the browsers that are signed in with it, and the failed attempts. */
export class StoredSetupAccess implements SetupAccess {
  readonly #store: AccessStore;
  readonly #environment: AccessEnvironment;
  readonly #sessions: PageSessions;
  readonly #browsers: KnownBrowsers;
  /** Handed over to the hub that replaces this one. */
  readonly signInState: SignInState;
  #code: string;

  private constructor(
    store: AccessStore,
    environment: AccessEnvironment,
    sessions: PageSessions,
    browsers: KnownBrowsers,
    signInState: SignInState,
    code: string,
  ) {
    this.#store = store;
    this.#environment = environment;
    this.#sessions = sessions;
    this.#browsers = browsers;
    this.signInState = signInState;
    this.#code = code;
  }

  /**
   * Loads the setup code, or creates it at the first start.
   * @param signInState of the previous hub in the same process
   */
  static async load(
    store: AccessStore,
    environment: AccessEnvironment,
    signInState = new SignInState(),
  ): Promise<StoredSetupAccess> {
    const { random } = environment;
    const storedCode = SETUP_CODE_FORMAT.parse((await store.setting(SETUP_CODE_SETTING)) ?? '');
    const code = storedCode ?? SETUP_CODE_FORMAT.generate(random);
    if (storedCode === null) await saveIfPossible(SETUP_CODE_SETTING, code, store, environment);
    const storedKey = await store.setting(BROWSER_KEY_SETTING);
    const key = storedKey ?? KnownBrowsers.generateKey(random);
    if (storedKey === null) await saveIfPossible(BROWSER_KEY_SETTING, key, store, environment);
    const sessions = await PageSessions.load(store, environment, code);
    return new StoredSetupAccess(store, environment, sessions, new KnownBrowsers(key, random), signInState, code);
  }

  /** Whether any browser had signed in before this run; otherwise the log says where to start. */
  get hadSignIns(): boolean {
    return this.#sessions.hadStoredSessions;
  }

  /** The setup code, as it is typed. */
  get code(): Secret {
    return new Secret(this.#code);
  }

  async signIn(typed: string, from: BrowserInfo, browserCookie: string | null = null): Promise<SignInResult> {
    const { clock, log } = this.#environment;
    const { loginThrottle } = this.signInState;
    const now = clock.now().uptime;
    const browser = browserCookie === null ? null : this.#browsers.verifyCookie(browserCookie, this.#code);
    const addressSource = loginSourceForAddress(from.address);
    // A known browser's separate attempts are used only while its address is locked.
    const countByBrowser = browser !== null && loginThrottle.remainingLockMs(addressSource, now) > 0;
    const source = countByBrowser ? loginSourceForBrowser(browser, from.address) : addressSource;
    const locked = loginThrottle.remainingLockMs(source, now);
    if (locked > 0) return { kind: 'locked', retryAfter: Math.ceil(locked / 1000) };
    if (!timingSafeEqualText(SETUP_CODE_FORMAT.parse(typed) ?? '', this.#code)) {
      const { lockedMs: lockedNow, logEntry } = loginThrottle.recordFailure(source, now);
      if (logEntry !== null)
        log.warn('too_many_wrong_setup_codes', { address: logEntry.address, count: logEntry.count });
      return lockedNow > 0 ? { kind: 'locked', retryAfter: Math.ceil(lockedNow / 1000) } : { kind: 'wrong' };
    }
    loginThrottle.reset(source);
    log.info('signed_in', { address: from.address, by: 'setup_code' });
    return { kind: 'signed_in', session: await this.#sessions.create(from) };
  }

  /**
   * The current burst of wrong codes: the source of the last ones and its start in ms since 1970; null if there is
   * none.
   */
  failedLoginBurst(): { readonly address: string; readonly since: number } | null {
    const { uptime, wall } = this.#environment.clock.now();
    const burst = this.signInState.loginThrottle.burst(uptime);
    return burst === null ? null : { address: burst.address, since: wall - (uptime - burst.startedAt) };
  }

  /** The token of a new one-time address, and its lifetime in ms. */
  issueSignInToken(): { readonly token: Secret; readonly lifetime: number } {
    const { clock, random } = this.#environment;
    const token = random.token(TOKEN_BYTES);
    this.signInState.tokens.add(token, clock.now().uptime);
    return { token: new Secret(token), lifetime: TOKEN_LIFETIME };
  }

  async redeemSignInToken(token: string, from: BrowserInfo): Promise<BrowserSession | null> {
    const { clock, log } = this.#environment;
    if (!this.signInState.tokens.consume(token, clock.now().uptime)) return null;
    log.info('signed_in', { address: from.address, by: 'sign_in_link' });
    return this.#sessions.create(from);
  }

  findSession(cookie: string): BrowserSession | null {
    return this.#sessions.find(cookie);
  }

  signOut(session: BrowserSession): Promise<void> {
    return this.#sessions.end(session);
  }

  listBrowsers(session: BrowserSession): readonly SignedInBrowser[] {
    return this.#sessions.list(session);
  }

  signOutBrowser(id: string): Promise<void> {
    return this.#sessions.endById(id);
  }

  signOutOthers(session: BrowserSession): Promise<void> {
    return this.#sessions.endOthers(session);
  }

  browserCookie(cookie: string | null): Secret {
    const isKnown = cookie !== null && this.#browsers.verifyCookie(cookie, this.#code) !== null;
    return isKnown ? new Secret(cookie) : this.#browsers.createCookie(this.#code);
  }

  proxiedCsrfToken(user: string): string {
    return this.#browsers.proxiedUserToken(user);
  }

  /**
   * Replaces the setup code. This ends all sessions, one-time addresses and known browsers.
   * @throws Failure `store_unwritable`: nothing has changed then
   */
  async rotate(): Promise<void> {
    const { random, log } = this.#environment;
    const code = SETUP_CODE_FORMAT.generate(random);
    await this.#store.saveSetting(SETUP_CODE_SETTING, code);
    this.#code = code;
    this.signInState.tokens.clear();
    await this.#sessions.endAll(code);
    log.warn('setup_code_rotated', { what_to_do: '"latchkey setup-code" shows it' });
  }
}

/**
 * Saves a setting, or logs the failure: a hub whose disk is full starts all the same. A value that was not saved
 * differs after the next start.
 */
async function saveIfPossible(
  name: string,
  value: string,
  store: AccessStore,
  { log }: AccessEnvironment,
): Promise<void> {
  try {
    await store.saveSetting(name, value);
  } catch (error) {
    log.error('store_unwritable', { error: messageOf(error) });
  }
}
