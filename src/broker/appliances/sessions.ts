import { type Appliance, connectionIds } from '../../core/appliances/appliance.ts';
import { type EndSessionResult, type Session, sessionConnection } from '../../core/appliances/session.ts';
import { messageOf } from '../../core/failure.ts';
import { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import type { Scheduler } from '../time/scheduler.ts';

/** Bytes of a refresh token that the hub issues. */
const TOKEN_BYTES = 32;
/** A failed write is retried after this long, in ms. */
const RETRY_INTERVAL = 10_000;
/** The scheduler's key for the retry. */
const RETRY_TASK = 'unsaved sessions';

type SessionStore = Pick<BrokerStore, 'sessions'>;
type SessionEnvironment = Pick<Environment, 'clock' | 'random' | 'log'>;

/**
 * The sessions behind the refresh tokens that the hub issues. While the store can't be written, sessions begin and end
 * only in memory; they are written as soon as it can be, at the latest when the hub stops. If a refresh token is lost
 * by a restart, its appliance needs another device flow.
 */
export class Sessions implements AsyncDisposable {
  readonly #store: SessionStore;
  readonly #scheduler: Pick<Scheduler, 'plan'>;
  readonly #environment: SessionEnvironment;
  #byHash = new Map<string, Session>();
  /** Not written yet, the oldest first. */
  #unsaved: Session[] = [];
  /** Ended sessions that are still in the store. */
  readonly #ended = new Map<string, Session>();
  /** On a site: the appliances whose sessions were written since they were last read. */
  readonly #written = new Set<string>();
  /** The refresh tokens issued in this run, by their sessions' hashes: a repeated poll gets the same one. */
  readonly #issuedTokens = new Map<string, Secret>();
  /** Serializes writes: what is read back is never older than what was written. */
  readonly #writes = new SerialQueue();
  #failing = false;

  private constructor(
    store: SessionStore,
    scheduler: Pick<Scheduler, 'plan'>,
    environment: SessionEnvironment,
    stored: readonly Session[],
  ) {
    this.#store = store;
    this.#scheduler = scheduler;
    this.#environment = environment;
    this.#byHash = new Map(stored.map((session) => [session.hash, session]));
  }

  static async load(
    store: SessionStore,
    scheduler: Pick<Scheduler, 'plan'>,
    environment: SessionEnvironment,
  ): Promise<Sessions> {
    return new Sessions(store, scheduler, environment, await store.sessions.all());
  }

  /**
   * Begins a session, or returns its refresh token again if this run has begun one for the same device flow. A session
   * of an earlier run is replaced.
   * @param appliance its id
   * @param device the `codeHash` of the device flow
   * @param connection the id of the connection that it was for
   * @returns the refresh token
   */
  async create(appliance: string, device: string, connection: string): Promise<Secret> {
    const { clock, random } = this.#environment;
    const issuedToken = this.#findIssuedToken(appliance, device);
    if (issuedToken !== undefined) {
      // The first request's write may still be under way.
      await this.#writes.idle;
      return issuedToken;
    }
    const token = new Secret(random.token(TOKEN_BYTES));
    const session = { hash: sha256(token.reveal()), appliance, device, connection, begun: clock.now() };
    for (const other of this.#byHash.values()) if (isOfSameFlow(other, session)) this.#byHash.delete(other.hash);
    this.#unsaved = [...this.#unsaved.filter((other) => !isOfSameFlow(other, session)), session];
    this.#byHash.set(session.hash, session);
    this.#issuedTokens.set(session.hash, token);
    await this.#write();
    return token;
  }

  /** The session of this refresh token; undefined if it is no valid one of the appliance. */
  find(appliance: string, token: string): Session | undefined {
    const session = this.#byHash.get(sha256(token));
    return session?.appliance === appliance ? session : undefined;
  }

  /** Ends the session of this refresh token. */
  async end(appliance: string, token: string): Promise<EndSessionResult> {
    const hash = sha256(token);
    const session = this.#byHash.get(hash) ?? this.#ended.get(hash);
    if (session?.appliance !== appliance) return 'none';
    await this.#end([session]);
    return this.#ended.has(hash) ? 'unwritten' : 'ended';
  }

  /** Ends all sessions of an appliance. */
  async endAll(appliance: string): Promise<void> {
    await this.#end([...this.#byHash.values()].filter((one) => one.appliance === appliance));
  }

  /** Ends the sessions that an appliance has for one of its connections. @param connection its id */
  async endFor(appliance: Appliance, connection: string): Promise<void> {
    const used = connectionIds(appliance);
    const isFor = (one: Session) => one.appliance === appliance.id && sessionConnection(one, used) === connection;
    await this.#end([...this.#byHash.values()].filter(isFor));
  }

  /**
   * Another hub has changed sessions.
   * @param appliances the ids of the appliances whose sessions have changed; null for any
   * @throws Failure as {@link Store}
   */
  applyNews(appliances: ReadonlySet<string> | null): Promise<void> {
    return this.#writes.run(() => this.#reload(appliances));
  }

  /** Another hub has removed these appliances, together with their sessions. */
  forget(appliances: readonly string[]): void {
    const removed = new Set(appliances);
    this.#unsaved = this.#unsaved.filter(({ appliance }) => !removed.has(appliance));
    for (const [hash, { appliance }] of this.#ended) if (removed.has(appliance)) this.#ended.delete(hash);
    this.#replace([], removed);
  }

  /** Writes the pending changes. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#unsaved.length + this.#ended.size > 0) await this.#write();
  }

  #findIssuedToken(appliance: string, device: string): Secret | undefined {
    for (const [hash, token] of this.#issuedTokens) {
      const session = this.#byHash.get(hash);
      if (session?.appliance === appliance && session.device === device) return token;
    }
    return undefined;
  }

  async #end(sessions: readonly Session[]): Promise<void> {
    this.#unsaved = this.#unsaved.filter((unsaved) => sessions.every(({ hash }) => hash !== unsaved.hash));
    for (const session of sessions) {
      this.#ended.set(session.hash, session);
      this.#byHash.delete(session.hash);
      this.#issuedTokens.delete(session.hash);
    }
    await this.#write();
  }

  #write(): Promise<void> {
    return this.#writes.run(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    const failures: unknown[] = [];
    // One that can't be written must not keep the others from being written.
    const failed = (error: unknown) => void failures.push(error);
    for (const { appliance } of [...this.#ended.values(), ...this.#unsaved]) this.#written.add(appliance);
    for (const hash of [...this.#ended.keys()]) await this.#writeEnd(hash).catch(failed);
    for (const session of [...this.#unsaved]) await this.#writeOne(session).catch(failed);
    if (failures.length === 0) await this.#reload(new Set(this.#written)).catch(failed);
    const [first] = failures;
    if (first !== undefined) this.#scheduleRetry(first);
    else this.#failing = false;
  }

  async #writeEnd(hash: string): Promise<void> {
    await this.#store.sessions.end(hash);
    this.#ended.delete(hash);
  }

  async #writeOne(session: Session): Promise<void> {
    // The session ended while earlier ones were written.
    if (!this.#unsaved.includes(session)) return;
    // False if its appliance was removed meanwhile, together with its sessions.
    if (!(await this.#store.sessions.save(session))) this.#byHash.delete(session.hash);
    this.#unsaved = this.#unsaved.filter((one) => one !== session);
  }

  #scheduleRetry(error: unknown): void {
    const { clock, log } = this.#environment;
    if (!this.#failing) log.error('store_unwritable', { error: messageOf(error) });
    this.#failing = true;
    this.#scheduler.plan(RETRY_TASK, clock.now().uptime + RETRY_INTERVAL, () => void this.#write());
  }

  /**
   * Reloads the sessions, because the store keeps only the newest few of them.
   * @param appliances only those of these appliances; null for all
   */
  async #reload(appliances: ReadonlySet<string> | null): Promise<void> {
    const stored = await this.#store.sessions.all(appliances ?? undefined);
    for (const appliance of appliances ?? this.#written) this.#written.delete(appliance);
    this.#replace(stored, appliances);
  }

  /** @param stored the stored sessions of these appliances @param appliances null for all */
  #replace(stored: readonly Session[], appliances: ReadonlySet<string> | null): void {
    const isRead = ({ appliance }: Session) => appliances === null || appliances.has(appliance);
    const others = [...this.#byHash.values()].filter((session) => !isRead(session));
    const current = [...others, ...stored.filter(({ hash }) => !this.#ended.has(hash)), ...this.#unsaved];
    this.#byHash = new Map(current.map((session) => [session.hash, session]));
    for (const hash of this.#issuedTokens.keys()) if (!this.#byHash.has(hash)) this.#issuedTokens.delete(hash);
  }
}

function isOfSameFlow(a: Session, b: Session): boolean {
  return a.appliance === b.appliance && a.device === b.device;
}
