import { messageOf } from '../../core/failure.ts';
import { SETUP_CODE_FORMAT } from '../../core/letter-code.ts';
import { Secret } from '../../core/secret.ts';
import type { BrowserInfo, PageSession, SetupAccess, SignedInBrowser, SignInResult } from '../../core/setup-access.ts';
import type { Store } from '../../core/store.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import { KnownBrowsers } from './known-browsers.ts';
import { LoginThrottle, loginSourceForAddress, loginSourceForBrowser } from './login-throttle.ts';
import { PageSessions } from './page-sessions.ts';

/** The name of the setup code among the store's settings. */
const SETUP_CODE_SETTING = 'setup_code';
/** The name of the key of the browsers' cookies among them. */
const BROWSER_KEY_SETTING = 'known_browsers_key';
/** Of the token of a one-time address: few, so that its QR code is one of few modules. */
const TOKEN_BYTES = 16;
/** How long such a token is good, in ms. */
const TOKEN_LIFETIME = 600_000;
/** How many of them are good at a time; of more the oldest is dropped. */
const MAX_TOKENS = 5;

/** The tokens of one-time sign-in addresses, in memory alone. Times are ms on the boot clock. */
class SignInTokens {
  /** By their hashes, the oldest first: when they end. */
  readonly #expiries = new Map<string, number>();

  add(token: string, now: number): void {
    this.#expiries.set(sha256(token), now + TOKEN_LIFETIME);
    const [oldest] = this.#expiries.keys();
    if (this.#expiries.size > MAX_TOKENS && oldest !== undefined) this.#expiries.delete(oldest);
  }

  /** Uses a token up. @returns whether it was good */
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

/** What is known of signing in and is in no store. */
export class SignInState {
  readonly tokens = new SignInTokens();
  readonly loginThrottle = new LoginThrottle();
}

type AccessStore = Pick<Store, 'setting' | 'saveSetting'>;
type AccessEnvironment = Pick<Environment, 'clock' | 'random' | 'log'>;

/** The setup code, who is signed in by it, and who has tried to be. */
export class StoredSetupAccess implements SetupAccess {
  readonly #store: AccessStore;
  readonly #environment: AccessEnvironment;
  readonly #sessions: PageSessions;
  readonly #browsers: KnownBrowsers;
  /** To be handed to a hub that takes this one's place. */
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

  /** Reads the setup code, or makes it at the first start. @param memory of the hub before this one in the same process */
  static async load(
    store: AccessStore,
    environment: AccessEnvironment,
    memory = new SignInState(),
  ): Promise<StoredSetupAccess> {
    const { random } = environment;
    const kept = SETUP_CODE_FORMAT.parse((await store.setting(SETUP_CODE_SETTING)) ?? '');
    const code = kept ?? SETUP_CODE_FORMAT.generate(random);
    if (kept === null) await saveIfPossible(SETUP_CODE_SETTING, code, store, environment);
    const keptKey = await store.setting(BROWSER_KEY_SETTING);
    const key = keptKey ?? KnownBrowsers.generateKey(random);
    if (keptKey === null) await saveIfPossible(BROWSER_KEY_SETTING, key, store, environment);
    const sessions = await PageSessions.load(store, environment, code);
    return new StoredSetupAccess(store, environment, sessions, new KnownBrowsers(key, random), memory, code);
  }

  /** Whether somebody had found the way to the page before this run: else the log says where it begins. */
  get hadSignIns(): boolean {
    return this.#sessions.hadStoredSessions;
  }

  /** The setup code, as it is to be typed. */
  get code(): Secret {
    return new Secret(this.#code);
  }

  async signIn(typed: string, from: BrowserInfo, browserCookie: string | null = null): Promise<SignInResult> {
    const { clock, log } = this.#environment;
    const { loginThrottle } = this.signInState;
    const now = clock.now().uptime;
    const browser = browserCookie === null ? null : this.#browsers.verifyCookie(browserCookie, this.#code);
    const byAddress = loginSourceForAddress(from.address);
    // A known browser's own tries are kept for when those of its address are used up.
    const useOwn = browser !== null && loginThrottle.remainingLockMs(byAddress, now) > 0;
    const source = useOwn ? loginSourceForBrowser(browser, from.address) : byAddress;
    const locked = loginThrottle.remainingLockMs(source, now);
    if (locked > 0) return { kind: 'locked', retryAfter: Math.ceil(locked / 1000) };
    if (!timingSafeEqualText(SETUP_CODE_FORMAT.parse(typed) ?? '', this.#code)) {
      const { lockedMs: lockedNow, logEntry: tell } = loginThrottle.recordFailure(source, now);
      if (tell !== null) log.warn('too_many_wrong_setup_codes', { address: tell.address, count: tell.count });
      return lockedNow > 0 ? { kind: 'locked', retryAfter: Math.ceil(lockedNow / 1000) } : { kind: 'wrong' };
    }
    loginThrottle.reset(source);
    log.info('signed_in', { address: from.address, by: 'setup_code' });
    return { kind: 'signed_in', session: await this.#sessions.create(from) };
  }

  /** Too many wrong codes of late: where the last ones came from, and since when, in ms since 1970; null where there are none. */
  failedLoginBurst(): { readonly address: string; readonly since: number } | null {
    const { uptime, wall } = this.#environment.clock.now();
    const burst = this.signInState.loginThrottle.burst(uptime);
    return burst === null ? null : { address: burst.address, since: wall - (uptime - burst.startedAt) };
  }

  /** The token of a new one-time address, and for how many ms it is good. */
  issueSignInToken(): { readonly token: Secret; readonly lifetime: number } {
    const { clock, random } = this.#environment;
    const token = random.token(TOKEN_BYTES);
    this.signInState.tokens.add(token, clock.now().uptime);
    return { token: new Secret(token), lifetime: TOKEN_LIFETIME };
  }

  async redeemSignInToken(token: string, from: BrowserInfo): Promise<PageSession | null> {
    const { clock, log } = this.#environment;
    if (!this.signInState.tokens.consume(token, clock.now().uptime)) return null;
    log.info('signed_in', { address: from.address, by: 'sign_in_link' });
    return this.#sessions.create(from);
  }

  findSession(cookie: string): PageSession | null {
    return this.#sessions.find(cookie);
  }

  signOut(session: PageSession): Promise<void> {
    return this.#sessions.end(session);
  }

  listBrowsers(session: PageSession): readonly SignedInBrowser[] {
    return this.#sessions.list(session);
  }

  signOutBrowser(id: string): Promise<void> {
    return this.#sessions.endById(id);
  }

  signOutOthers(session: PageSession): Promise<void> {
    return this.#sessions.endOthers(session);
  }

  browserCookie(present: string | null): Secret {
    const isKnown = present !== null && this.#browsers.verifyCookie(present, this.#code) !== null;
    return isKnown ? new Secret(present) : this.#browsers.createCookie(this.#code);
  }

  /**
   * Puts another setup code in place; whoever is signed in is no longer, no one-time address is good any more, and no browser is known.
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

/** A hub whose disk is full starts all the same; what was not kept is another one after the next start. */
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
