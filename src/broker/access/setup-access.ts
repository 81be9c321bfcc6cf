import { PAGE_SESSIONS_SETTING } from '../../core/backup-contents.ts';
import type { Instant } from '../../core/clock.ts';
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
import type { SiteNews } from '../../core/site.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import type { BrokerStore } from '../ports.ts';
import { KnownBrowsers } from './known-browsers.ts';
import { type LoginSource, LoginThrottle, loginSourceForAddress, loginSourceForBrowser } from './login-throttle.ts';
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

  /** Whether there is such a token, valid or not. */
  has(token: string): boolean {
    return this.#expiries.has(sha256(token));
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

type AccessStore = Pick<BrokerStore, 'setting' | 'saveSetting' | 'replaceSettings' | 'site'>;
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
    const parseCode = (text: string) => SETUP_CODE_FORMAT.parse(text);
    const createCode = () => SETUP_CODE_FORMAT.generate(random);
    const code = await loadOrCreate(SETUP_CODE_SETTING, parseCode, createCode, store, environment);
    const createKey = () => KnownBrowsers.generateKey(random);
    const key = await loadOrCreate(BROWSER_KEY_SETTING, (text) => text, createKey, store, environment);
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
    const isLocked = ({ uptime }: Instant) =>
      loginThrottle.remainingLockMs(this.#sourceOf(from, browserCookie, uptime), uptime) > 0;
    // Before the attempt is checked and counted, which must happen at once: others may arrive meanwhile.
    if (this.#store.site !== null && !isLocked(clock.now())) await this.#learnNewCode();
    const now = clock.now().uptime;
    const source = this.#sourceOf(from, browserCookie, now);
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

  /** What a wrong code counts against. @param now on the boot clock, in ms */
  #sourceOf({ address }: BrowserInfo, browserCookie: string | null, now: number): LoginSource {
    const browser = browserCookie === null ? null : this.#browsers.verifyCookie(browserCookie, this.#code);
    const addressSource = loginSourceForAddress(address);
    // A known browser's separate attempts are used only while its address is locked.
    const countByBrowser = browser !== null && this.signInState.loginThrottle.remainingLockMs(addressSource, now) > 0;
    return countByBrowser ? loginSourceForBrowser(browser, address) : addressSource;
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
    const { tokens } = this.signInState;
    if (!tokens.has(token)) return null;
    await this.#learnNewCode();
    if (!tokens.consume(token, clock.now().uptime)) return null;
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

  /** The database of the site can be used again after it could not. */
  onStoreWritable(): Promise<void> {
    return this.#sessions.onStoreWritable();
  }

  /**
   * Another hub has replaced the setup code, or changed the sessions.
   * @throws Failure as {@link Store}
   */
  async applyNews({ settings, all }: Pick<SiteNews, 'settings' | 'all'>): Promise<void> {
    if (all || settings.has(SETUP_CODE_SETTING)) await this.#reloadCode();
    if (all || settings.has(SETUP_CODE_SETTING) || settings.has(PAGE_SESSIONS_SETTING)) await this.#sessions.reload();
  }

  /** On a site: no browser may sign in with a code that another hub has replaced a moment ago. */
  async #learnNewCode(): Promise<void> {
    if (this.#store.site === null) return;
    // While the database is away, the code that is known counts.
    await this.#reloadCode().catch(() => undefined);
  }

  async #reloadCode(): Promise<void> {
    const code = SETUP_CODE_FORMAT.parse((await this.#store.setting(SETUP_CODE_SETTING)) ?? '');
    if (code === null || code === this.#code) return;
    this.#code = code;
    this.signInState.tokens.clear();
    this.#sessions.forgetAll(code);
  }
}

/**
 * Loads a setting, or creates it at the first start. If it can't be saved, the failure is logged: a hub whose disk is
 * full starts all the same, and the value differs after the next start.
 * @param parse null if the stored text is of no use
 */
async function loadOrCreate(
  name: string,
  parse: (text: string) => string | null,
  create: () => string,
  store: AccessStore,
  { log }: AccessEnvironment,
): Promise<string> {
  const stored = await store.setting(name);
  const known = stored === null ? null : parse(stored);
  if (known !== null) return known;
  const created = create();
  try {
    const isCreated = await store.replaceSettings({ [name]: stored }, { [name]: created });
    // Another hub of the site has created it meanwhile.
    if (!isCreated) return parse((await store.setting(name)) ?? '') ?? created;
  } catch (error) {
    log.error('store_unwritable', { error: messageOf(error) });
  }
  return created;
}
