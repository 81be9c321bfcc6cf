import { PAGE_SESSIONS_SETTING } from '../../core/backup-contents.ts';
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
import { ClientRateLimiter, WRONG_CODE_LIMIT } from '../../system/limits/client-rate-limiter.ts';
import { hmacSha256, sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { BrokerStore } from '../ports.ts';
import { PageSessions, type SessionEnvironment } from './page-sessions.ts';

/** The store's setting with the setup code. */
const SETUP_CODE_SETTING = 'setup_code';
/** The store's setting with the key of the CSRF tokens of people whom a reverse proxy has signed in. */
const CSRF_KEY_SETTING = 'csrf_key';
/** Bytes of that key. */
const CSRF_KEY_BYTES = 32;
/** Bytes of the token of a one-time address: few, so that its QR code has few modules. */
const TOKEN_BYTES = 16;
/** How long a token is valid, in ms. */
const TOKEN_LIFETIME = 600_000;
/** The most tokens that are valid at once; beyond that the oldest is dropped. */
const MAX_TOKENS = 5;
/** Too many wrong codes count as over after this long without another one, in ms. */
const WRONG_CODES_TIMEOUT = 2 * 3_600_000;

/** The tokens of one-time addresses, only in memory. Times are ms on the boot clock. */
export class SignInTokens {
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

type AccessStore = Pick<BrokerStore, 'settings'>;

/** Too many wrong setup codes from one address. Times are ms on the boot clock. */
interface WrongCodes {
  readonly address: string;
  readonly startedAt: number;
  readonly lastAt: number;
}

/** The setup code, the browsers that are signed in with it, and the failed attempts. */
export class StoredSetupAccess implements SetupAccess {
  readonly #store: AccessStore;
  readonly #environment: SessionEnvironment;
  readonly #sessions: PageSessions;
  readonly #csrfKey: string;
  /** Handed over to the hub that replaces this one. */
  readonly signInTokens: SignInTokens;
  readonly #wrongCodeLimiter: ClientRateLimiter;
  #wrongCodes: WrongCodes | null = null;
  #code: string;

  private constructor(
    store: AccessStore,
    environment: SessionEnvironment,
    sessions: PageSessions,
    csrfKey: string,
    signInTokens: SignInTokens,
    code: string,
  ) {
    this.#store = store;
    this.#environment = environment;
    this.#sessions = sessions;
    this.#csrfKey = csrfKey;
    this.signInTokens = signInTokens;
    this.#wrongCodeLimiter = new ClientRateLimiter('too_many_wrong_setup_codes', WRONG_CODE_LIMIT, environment);
    this.#code = code;
  }

  /**
   * Loads the setup code, or creates it at the first start.
   * @param signInTokens of the previous hub in the same process
   */
  static async load(
    store: AccessStore,
    environment: SessionEnvironment,
    signInTokens = new SignInTokens(),
  ): Promise<StoredSetupAccess> {
    const { random } = environment;
    const parseCode = (text: string) => SETUP_CODE_FORMAT.parse(text);
    const createCode = () => SETUP_CODE_FORMAT.generate(random);
    const code = await loadOrCreate(SETUP_CODE_SETTING, parseCode, createCode, store, environment);
    const createKey = () => random.token(CSRF_KEY_BYTES);
    const csrfKey = await loadOrCreate(CSRF_KEY_SETTING, (text) => text, createKey, store, environment);
    const sessions = await PageSessions.load(store, environment, code);
    return new StoredSetupAccess(store, environment, sessions, csrfKey, signInTokens, code);
  }

  /** Whether any browser had signed in before this run; otherwise the log says where to start. */
  get hadSignIns(): boolean {
    return this.#sessions.hadStoredSessions;
  }

  /** The setup code, as it is typed. */
  get code(): Secret {
    return new Secret(this.#code);
  }

  async signIn(typed: string, from: BrowserInfo): Promise<SignInResult> {
    const { address } = from;
    const before = this.#wrongCodeLimiter.peek(address);
    if (!before.ok) return this.#refuse(address, before.retryAfter);
    await this.#learnNewCode();
    // Checked and counted at once: other attempts may have arrived meanwhile.
    const isRight = timingSafeEqualText(SETUP_CODE_FORMAT.parse(typed) ?? '', this.#code);
    const allowed = isRight ? this.#wrongCodeLimiter.peek(address) : this.#wrongCodeLimiter.take(address);
    if (!allowed.ok) return this.#refuse(address, allowed.retryAfter);
    if (!isRight) return { kind: 'wrong' };
    this.#environment.log.info('signed_in', { address, by: 'setup_code' });
    return { kind: 'signed_in', session: await this.#sessions.create(from) };
  }

  /** The last address with too many wrong codes, and since when there are any, in ms since 1970; null if there are none. */
  tooManyWrongCodes(): { readonly address: string; readonly since: number } | null {
    const { uptime, wall } = this.#environment.clock.now();
    const recent = this.#recentWrongCodes(uptime);
    return recent === null ? null : { address: recent.address, since: wall - (uptime - recent.startedAt) };
  }

  /** The token of a new one-time address, and its lifetime in ms. */
  issueSignInToken(): { readonly token: Secret; readonly lifetime: number } {
    const { clock, random } = this.#environment;
    const token = random.token(TOKEN_BYTES);
    this.signInTokens.add(token, clock.now().uptime);
    return { token: new Secret(token), lifetime: TOKEN_LIFETIME };
  }

  async redeemSignInToken(token: string, from: BrowserInfo): Promise<BrowserSession | null> {
    const { clock, log } = this.#environment;
    if (!this.signInTokens.has(token)) return null;
    await this.#learnNewCode();
    if (!this.signInTokens.consume(token, clock.now().uptime)) return null;
    log.info('signed_in', { address: from.address, by: 'sign_in_link' });
    return this.#sessions.create(from);
  }

  async showSetupCode(cookie: string, { address }: BrowserInfo): Promise<Secret | null> {
    // A code that another hub has replaced is of no use, and its sessions have ended.
    await this.#learnNewCode();
    if (this.findSession(cookie) === null) return null;
    this.#environment.log.info('setup_code_shown', { address });
    return this.code;
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

  proxiedCsrfToken(user: string): string {
    return hmacSha256(this.#csrfKey, user);
  }

  /**
   * Replaces the setup code. This ends all sessions and one-time addresses.
   * @throws Failure `store_unwritable`: nothing has changed then
   */
  async rotate(): Promise<void> {
    const { random, log } = this.#environment;
    const code = SETUP_CODE_FORMAT.generate(random);
    await this.#store.settings.save({ [SETUP_CODE_SETTING]: code });
    this.#code = code;
    this.signInTokens.clear();
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

  #refuse(address: string, retryAfter: number): SignInResult {
    const now = this.#environment.clock.now().uptime;
    this.#wrongCodes = { address, startedAt: this.#recentWrongCodes(now)?.startedAt ?? now, lastAt: now };
    return { kind: 'locked', retryAfter };
  }

  #recentWrongCodes(now: number): WrongCodes | null {
    return this.#wrongCodes !== null && now - this.#wrongCodes.lastAt < WRONG_CODES_TIMEOUT ? this.#wrongCodes : null;
  }

  /** No browser may sign in with a code that another hub of the site has replaced a moment ago. */
  async #learnNewCode(): Promise<void> {
    // While the store can't be read, the code that is known counts.
    await this.#reloadCode().catch(() => undefined);
  }

  async #reloadCode(): Promise<void> {
    const code = SETUP_CODE_FORMAT.parse((await this.#store.settings.get(SETUP_CODE_SETTING)) ?? '');
    if (code === null || code === this.#code) return;
    this.#code = code;
    this.signInTokens.clear();
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
  { log }: SessionEnvironment,
): Promise<string> {
  const stored = await store.settings.get(name);
  const known = stored === null ? null : parse(stored);
  if (known !== null) return known;
  const created = create();
  try {
    const isCreated = await store.settings.replace({ [name]: stored }, { [name]: created });
    // Another hub of the site has created it meanwhile.
    if (!isCreated) return parse((await store.settings.get(name)) ?? '') ?? created;
  } catch (error) {
    log.error('store_unwritable', { error: messageOf(error) });
  }
  return created;
}
