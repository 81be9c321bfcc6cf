import * as v from 'valibot';
import { PAGE_SESSIONS_SETTING } from '../../core/backup-contents.ts';
import { confirmedTimeAt, elapsed, type Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { Secret } from '../../core/secret.ts';
import type { BrowserInfo, BrowserSession, SignedInBrowser } from '../../core/setup-access.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** How long a browser stays signed in, in ms. */
const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** The most browsers that are signed in at once; beyond that the oldest session ends. */
const MAX_PAGE_SESSIONS = 20;
/** Bytes of a cookie. It can't be guessed, so its hash needs no salt. */
const COOKIE_BYTES = 32;

const storedSession = v.object({
  hash: v.string(),
  begun: instantSchema,
  address: v.string(),
  browser: v.nullable(v.string()),
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

type SessionStore = Pick<BrokerStore, 'settings'>;

/** What the sessions of the page need from outside. */
export interface SessionEnvironment extends Pick<Environment, 'clock' | 'random' | 'log'> {
  readonly referenceClock: Pick<ReferenceClock, 'confirmed'>;
}

/**
 * The sessions of the installer's page. The store holds hashes of their cookies, so that a restart signs nobody out; it
 * is written only when a browser signs in or out, never when a page is viewed. Sessions belong to one setup code: any
 * other code, however it got into the store, invalidates them. If the store can't be written, sessions are only in
 * memory.
 *
 * The hubs of a site share them. Each one writes only what it has added and removed itself, so none undoes a sign-in or
 * a sign-out at another hub.
 */
export class PageSessions {
  readonly #store: SessionStore;
  readonly #environment: SessionEnvironment;
  /** By the cookie's hash, the oldest first. */
  #sessions: Map<string, StoredPageSession>;
  /** The hashes of the sessions that were added and removed here, and not written yet. */
  readonly #added = new Set<string>();
  readonly #removed = new Set<string>();
  /** When this run first saw each session that it found in the store, by the cookie's hash. */
  readonly #firstSeen: Map<string, Instant>;
  /**
   * When each session was last used in this run, by the cookie's hash; only in memory, to spare the SD card the writes.
   */
  readonly #lastSeen = new Map<string, Instant>();
  /** The hash of the setup code. */
  #setupCodeHash: string;
  /** Whether any browser had ever signed in before this run. */
  readonly hadStoredSessions: boolean;
  /** Serializes writes. */
  readonly #writes = new SerialQueue();

  private constructor(
    store: SessionStore,
    environment: SessionEnvironment,
    setupCodeHash: string,
    sessions: Map<string, StoredPageSession>,
    hadStoredSessions: boolean,
  ) {
    this.#store = store;
    this.#environment = environment;
    this.#setupCodeHash = setupCodeHash;
    this.#sessions = sessions;
    this.#firstSeen = new Map([...sessions.keys()].map((hash) => [hash, environment.clock.now()]));
    this.hadStoredSessions = hadStoredSessions;
  }

  /** @param setupCode the current one */
  static async load(store: SessionStore, environment: SessionEnvironment, setupCode: string): Promise<PageSessions> {
    const stored = await store.settings.get(PAGE_SESSIONS_SETTING);
    const code = sha256(setupCode);
    return new PageSessions(store, environment, code, parseSessions(stored, code), stored !== null);
  }

  /** Takes over what the store has, because another hub has changed it. @throws Failure as {@link Store} */
  reload(): Promise<void> {
    return this.#writes.run(async () => {
      this.#merge(parseSessions(await this.#store.settings.get(PAGE_SESSIONS_SETTING), this.#setupCodeHash));
    });
  }

  /** The store can be written again: writes the sign-ins and sign-outs that are only here. */
  async onStoreWritable(): Promise<void> {
    if (this.#added.size + this.#removed.size > 0) await this.#write();
  }

  async create({ address, browser }: BrowserInfo): Promise<BrowserSession> {
    const { clock, random } = this.#environment;
    const cookie = random.token(COOKIE_BYTES);
    const added = sha256(cookie);
    this.#sessions.set(added, { begun: clock.now(), address, browser });
    this.#added.add(added);
    for (const hash of [...this.#sessions.keys()].slice(0, -MAX_PAGE_SESSIONS)) this.#remove(hash);
    await this.#write();
    return toPageSession(cookie, SESSION_LIFETIME_MS);
  }

  /** The session of this cookie; null if there is none or it has expired. */
  find(cookie: string): BrowserSession | null {
    const hash = sha256(cookie);
    const found = this.#sessions.get(hash);
    const left = found === undefined ? 0 : this.#timeLeft(hash, found);
    if (left === 0) return null;
    this.#lastSeen.set(hash, this.#environment.clock.now());
    return toPageSession(cookie, left);
  }

  /** The browsers that are signed in: the one of this session first, then the latest sign-ins. */
  list({ cookie }: BrowserSession): SignedInBrowser[] {
    const now = this.#environment.clock.now();
    const own = sha256(cookie.reveal());
    return [...this.#sessions]
      .filter(([id, session]) => this.#timeLeft(id, session) > 0)
      .map(([id, { begun, address, browser }]) => {
        const seen = this.#lastSeen.get(id);
        const lastSeenAt = seen === undefined ? null : now.wall - (elapsed(seen, now) ?? 0);
        return {
          id,
          address,
          browser,
          signedInAt: now.wall - this.#age(id, begun, now),
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
    this.forgetAll(setupCode);
    await this.#write();
  }

  /** Ends all sessions here, because another hub has replaced the setup code. @param setupCode the new one */
  forgetAll(setupCode: string): void {
    this.#setupCodeHash = sha256(setupCode);
    for (const pending of [this.#sessions, this.#lastSeen, this.#firstSeen, this.#added, this.#removed])
      pending.clear();
  }

  #remove(id: string): boolean {
    this.#lastSeen.delete(id);
    this.#firstSeen.delete(id);
    if (!this.#sessions.delete(id)) return false;
    this.#added.delete(id);
    this.#removed.add(id);
    return true;
  }

  #timeLeft(id: string, { begun }: StoredPageSession): number {
    return Math.max(0, SESSION_LIFETIME_MS - this.#age(id, begun, this.#environment.clock.now()));
  }

  /**
   * The age of a session in ms. One of another boot, which may be that of another hub, is at least as old as the time for
   * which this run has known it. Only a confirmed clock tells more: after a power cut the hub's own one may be years
   * behind. If it was wrong at the sign-in, a sign-in in the future counts as equally far in the past.
   */
  #age(id: string, begun: Instant, now: Instant): number {
    const known = this.#knownFor(id, begun, now);
    const time = confirmedTimeAt(this.#environment.referenceClock.confirmed, now);
    return begun.boot === now.boot || time === null ? known : Math.max(known, Math.abs(time - begun.wall));
  }

  /** For how long this run has known a session for certain, in ms. */
  #knownFor(id: string, begun: Instant, now: Instant): number {
    return elapsed(begun, now) ?? elapsed(this.#firstSeen.get(id) ?? now, now) ?? 0;
  }

  /**
   * Whether a session has ended for all hubs. The wall clock of this one may be wrong: a session of another boot counts
   * as ended only when this hub has known it for long enough.
   */
  #isOver(id: string, { begun }: StoredPageSession): boolean {
    return this.#knownFor(id, begun, this.#environment.clock.now()) >= SESSION_LIFETIME_MS;
  }

  /** Adds what was added here, and removes what was removed here or is over. */
  #write(): Promise<void> {
    return this.#writes.run(async () => {
      for (const [hash, session] of this.#sessions) if (this.#isOver(hash, session)) this.#remove(hash);
      const [added, removed] = [new Set(this.#added), new Set(this.#removed)];
      try {
        const changed = await this.#writeMerged();
        for (const hash of added) this.#added.delete(hash);
        for (const hash of removed) this.#removed.delete(hash);
        this.#merge(changed);
      } catch (error) {
        this.#environment.log.error('store_unwritable', { error: messageOf(error) });
      }
    });
  }

  /**
   * @returns what is stored then. Another hub that writes at the same time makes this one start from what that has
   * written
   */
  async #writeMerged(): Promise<Map<string, StoredPageSession>> {
    for (;;) {
      const stored = await this.#store.settings.get(PAGE_SESSIONS_SETTING);
      const merged = this.#withOwnChanges(parseSessions(stored, this.#setupCodeHash));
      const values = { [PAGE_SESSIONS_SETTING]: this.#serialize(merged) };
      if (await this.#store.settings.replace({ [PAGE_SESSIONS_SETTING]: stored }, values)) return merged;
    }
  }

  #merge(stored: Map<string, StoredPageSession>): void {
    this.#sessions = this.#withOwnChanges(stored);
    const now = this.#environment.clock.now();
    for (const hash of this.#sessions.keys()) if (!this.#firstSeen.has(hash)) this.#firstSeen.set(hash, now);
    for (const times of [this.#lastSeen, this.#firstSeen]) {
      for (const hash of times.keys()) if (!this.#sessions.has(hash)) times.delete(hash);
    }
  }

  /** The stored sessions with the changes that were made here and are not written yet. */
  #withOwnChanges(stored: ReadonlyMap<string, StoredPageSession>): Map<string, StoredPageSession> {
    const own = [...this.#sessions].filter(([hash]) => this.#added.has(hash) && !stored.has(hash));
    const kept = [...stored].filter(([hash]) => !this.#removed.has(hash));
    return new Map([...kept, ...own].slice(-MAX_PAGE_SESSIONS));
  }

  #serialize(sessions: ReadonlyMap<string, StoredPageSession>): string {
    const entries = [...sessions].map(([hash, session]) => ({ hash, ...session }));
    return JSON.stringify({ code: this.#setupCodeHash, sessions: entries });
  }
}

/** @param code the hash of the setup code: sessions of any other one don't count */
function parseSessions(text: string | null, code: string): Map<string, StoredPageSession> {
  const read = v.safeParse(storedSessions, text);
  const valid = read.success && read.output.code === code ? read.output.sessions : [];
  return new Map(valid.map(({ hash, ...session }) => [hash, session]));
}

/** The CSRF token of forms is derived from the cookie and does not reveal it. @param left in ms */
function toPageSession(cookie: string, left: number): BrowserSession {
  return { cookie: new Secret(cookie), csrfToken: sha256(`csrf ${cookie}`), lifetime: Math.ceil(left / 1000) };
}
