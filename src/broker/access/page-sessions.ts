import * as v from 'valibot';
import { PAGE_SESSIONS_SETTING } from '../../core/backup-contents.ts';
import { elapsed, type Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { Secret } from '../../core/secret.ts';
import type { BrowserInfo, BrowserSession, SignedInBrowser } from '../../core/setup-access.ts';
import type { Store } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';

/** How long a browser stays signed in, in ms. */
const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** The most browsers that are signed in at once; beyond that the oldest session ends. */
const MAX_PAGE_SESSIONS = 20;
/** Bytes of a cookie. It can't be guessed, so its hash needs no salt. */
const COOKIE_BYTES = 32;

const instant = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
const storedSession = v.object({
  hash: v.string(),
  begun: instant,
  address: v.optional(v.string(), ''),
  browser: v.optional(v.nullable(v.string()), null),
});
const storedSessions = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({ code: v.string(), sessions: v.array(storedSession) }),
);

/** A browser that is signed in: when it signed in, and from where. */
interface StoredPageSession extends BrowserInfo {
  readonly begun: Instant;
}

type SessionStore = Pick<Store, 'setting' | 'saveSetting'>;

/**
 * The sessions of the installer's page. The store holds hashes of their cookies, so that a restart signs nobody out; it
 * is written only when a browser signs in or out, never when a page is viewed. Sessions belong to one setup code: any
 * other code, however it got into the store, invalidates them. If the store can't be written, sessions are only in
 * memory.
 */
export class PageSessions {
  readonly #store: SessionStore;
  readonly #environment: Pick<Environment, 'clock' | 'random' | 'log'>;
  /** By the cookie's hash, the oldest first. */
  readonly #sessions: Map<string, StoredPageSession>;
  /**
   * When each session was last used in this run, by the cookie's hash; only in memory, to spare the SD card the writes.
   */
  readonly #lastSeen = new Map<string, Instant>();
  /** The hash of the setup code. */
  #setupCodeHash: string;
  /** Whether any browser had ever signed in before this run. */
  readonly hadStoredSessions: boolean;
  /** Serializes writes. */
  #writeQueue: Promise<void> = Promise.resolve();

  private constructor(
    store: SessionStore,
    environment: Pick<Environment, 'clock' | 'random' | 'log'>,
    setupCodeHash: string,
    sessions: Map<string, StoredPageSession>,
    hadStoredSessions: boolean,
  ) {
    this.#store = store;
    this.#environment = environment;
    this.#setupCodeHash = setupCodeHash;
    this.#sessions = sessions;
    this.hadStoredSessions = hadStoredSessions;
  }

  /** @param setupCode the current one */
  static async load(
    store: SessionStore,
    environment: Pick<Environment, 'clock' | 'random' | 'log'>,
    setupCode: string,
  ): Promise<PageSessions> {
    const stored = await store.setting(PAGE_SESSIONS_SETTING);
    const read = v.safeParse(storedSessions, stored);
    const code = sha256(setupCode);
    const valid = read.success && read.output.code === code ? read.output.sessions : [];
    const sessions = new Map(valid.map(({ hash, ...session }) => [hash, session]));
    return new PageSessions(store, environment, code, sessions, stored !== null);
  }

  async create({ address, browser }: BrowserInfo): Promise<BrowserSession> {
    const { clock, random } = this.#environment;
    const cookie = random.token(COOKIE_BYTES);
    this.#sessions.set(sha256(cookie), { begun: clock.now(), address, browser });
    for (const hash of [...this.#sessions.keys()].slice(0, -MAX_PAGE_SESSIONS)) this.#remove(hash);
    await this.#write();
    return toPageSession(cookie, SESSION_LIFETIME_MS);
  }

  /** The session of this cookie; null if there is none or it has expired. */
  find(cookie: string): BrowserSession | null {
    const hash = sha256(cookie);
    const found = this.#sessions.get(hash);
    const left = found === undefined ? 0 : this.#timeLeft(found.begun);
    if (left === 0) return null;
    this.#lastSeen.set(hash, this.#environment.clock.now());
    return toPageSession(cookie, left);
  }

  /** The browsers that are signed in: the one of this session first, then the latest sign-ins. */
  list({ cookie }: BrowserSession): SignedInBrowser[] {
    const now = this.#environment.clock.now();
    const own = sha256(cookie.reveal());
    return [...this.#sessions]
      .filter(([, { begun }]) => this.#timeLeft(begun) > 0)
      .map(([id, { begun, address, browser }]) => {
        const seen = this.#lastSeen.get(id);
        const lastSeenAt = seen === undefined ? null : now.wall - sessionAge(seen, now);
        return {
          id,
          address,
          browser,
          signedInAt: now.wall - sessionAge(begun, now),
          lastSeenAt,
          isCurrent: id === own,
        };
      })
      .reverse()
      .toSorted((a, b) => Number(b.isCurrent) - Number(a.isCurrent));
  }

  end({ cookie }: BrowserSession): Promise<void> {
    return this.endById(sha256(cookie.reveal()));
  }

  /** @param id from {@link list} */
  async endById(id: string): Promise<void> {
    if (this.#remove(id)) await this.#write();
  }

  /** Ends all sessions but this one. */
  async endOthers({ cookie }: BrowserSession): Promise<void> {
    const own = sha256(cookie.reveal());
    const others = [...this.#sessions.keys()].filter((id) => id !== own);
    for (const id of others) this.#remove(id);
    if (others.length > 0) await this.#write();
  }

  /** Ends all sessions. @param setupCode the new one */
  async endAll(setupCode: string): Promise<void> {
    this.#setupCodeHash = sha256(setupCode);
    this.#sessions.clear();
    this.#lastSeen.clear();
    await this.#write();
  }

  #remove(id: string): boolean {
    this.#lastSeen.delete(id);
    return this.#sessions.delete(id);
  }

  #timeLeft(begun: Instant): number {
    return Math.max(0, SESSION_LIFETIME_MS - sessionAge(begun, this.#environment.clock.now()));
  }

  #write(): Promise<void> {
    this.#writeQueue = this.#writeQueue.then(() => this.#writeAll());
    return this.#writeQueue;
  }

  async #writeAll(): Promise<void> {
    for (const [hash, { begun }] of this.#sessions) if (this.#timeLeft(begun) === 0) this.#remove(hash);
    const sessions = [...this.#sessions].map(([hash, session]) => ({ hash, ...session }));
    try {
      await this.#store.saveSetting(PAGE_SESSIONS_SETTING, JSON.stringify({ code: this.#setupCodeHash, sessions }));
    } catch (error) {
      this.#environment.log.error('store_unwritable', { error: messageOf(error) });
    }
  }
}

/**
 * The age of a session in ms. For a session of another boot only the wall clock is known, and it may be wrong now or
 * have been wrong then. So the age is at least the time since this boot, and a start in the future counts as equally
 * far in the past.
 */
function sessionAge(begun: Instant, now: Instant): number {
  return elapsed(begun, now) ?? Math.max(now.uptime, Math.abs(now.wall - begun.wall));
}

/** The CSRF token of forms is derived from the cookie and does not reveal it. @param left in ms */
function toPageSession(cookie: string, left: number): BrowserSession {
  return { cookie: new Secret(cookie), csrfToken: sha256(`csrf ${cookie}`), lifetime: Math.ceil(left / 1000) };
}
