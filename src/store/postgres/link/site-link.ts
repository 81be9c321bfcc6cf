import type { Clock, Timers } from '../../../core/clock.ts';
import type { OwnSiteEntry, SiteHub, SiteStore, StoreWatcher } from '../../../core/site.ts';
import { SerialQueue } from '../../../system/serial-queue.ts';
import { version } from '../../../system/version.ts';
import { FENCE, type SiteDatabase } from '../database/database.ts';
import { SiteConnection, type SiteConnectionOptions } from '../database/site-connection.ts';
import { inTransaction, type Statements } from '../database/sql.ts';
import type { SiteClocks } from './clocks.ts';
import { ANYTHING, ChangeReader, parseNews, RESTORED } from './news.ts';
import { checkServer, cleanUp, readHubs, removeHub, writeHeartbeat } from './site-state.ts';

/** How often a hub looks for news, and says that it is alive, in ms. */
const LOOK_INTERVAL = 3000;
const HEARTBEAT_INTERVAL = 6000;
/** How long a hub waits before it tries to use a database again that it could not, in ms. */
const RETRY_PAUSE = { first: 500, longest: 5000 };

/**
 * How long after the database's clock was set everything is read again, in ms: by then each hub has measured it, so that
 * the ages of what they have stored are right.
 */
const CLOCK_STEP_DELAY = 15_000;

/** What a {@link SiteLink} needs. */
interface LinkOptions extends SiteConnectionOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly database: SiteDatabase;
  readonly clocks: SiteClocks;
  readonly siteId: string;
  /** The hub's name, as configured. */
  readonly hubName: string;
  /** Called when the database can be used again, before the news of that time. */
  readonly onReturning: () => Promise<void>;
}

/** The link of a running hub with its site: news, heartbeats, and what follows when the database was away. */
export class SiteLink implements SiteStore, AsyncDisposable {
  readonly #options: LinkOptions;
  readonly #changes: ChangeReader;
  #connection: SiteConnection;
  #hubs: readonly SiteHub[] = [];
  #entry: OwnSiteEntry;
  /** The news that were not delivered yet. */
  readonly #pending = new Set<string>();
  readonly #deliveries = new SerialQueue();
  readonly #watchers: StoreWatcher[] = [];
  #wasRestored = false;
  #isLookPlanned = false;
  readonly #stopped = new AbortController();
  #wake = new AbortController();
  /** When the last heartbeat was, on the boot clock in ms. */
  #lastHeartbeat = Number.NEGATIVE_INFINITY;
  /** The server that this hub uses, see `checkServer`. */
  #server: string;
  /** When everything is read again because the database's clock was set, on the boot clock in ms; null for never. */
  #rereadAt: number | null = null;
  #running: Promise<void> = Promise.resolve();

  /**
   * @param connection is disposed of with the link
   * @param server that it is connected to
   */
  constructor(options: LinkOptions, connection: SiteConnection, server: string) {
    this.#options = options;
    this.#entry = { name: options.hubName, address: null, version: version() };
    this.#server = server;
    this.#changes = new ChangeReader(options.hubId);
    this.#connection = connection;
    options.database.onOutage(() => {
      this.#wakeUp();
      for (const watcher of this.#watchers) watcher.outage?.();
    });
  }

  get hubId(): string {
    return this.#options.hubId;
  }

  get siteId(): string {
    return this.#options.siteId;
  }

  get hubs(): readonly SiteHub[] {
    return this.#hubs;
  }

  /** What a {@link SiteConnection} of this link tells. */
  readonly events = {
    onNotification: (): void => this.#lookSoon(),
    onLost: (error: Error): void => this.#options.database.reportOutage(error),
  };

  /** Begins: everything that is read after this is completed by the news that follow. */
  async start(): Promise<void> {
    await this.#changes.look(this.#connection.sql, this.#options.clock.now().uptime);
    await this.#writeHeartbeat();
    this.#running = this.#run();
  }

  /** See `Store.watch`. News are kept until somebody watches them. */
  watch(watcher: StoreWatcher): void {
    this.#watchers.push(watcher);
    if (this.#wasRestored) watcher.restored?.();
    this.#deliver();
  }

  announce(entry: OwnSiteEntry): void {
    this.#entry = entry;
    this.#lastHeartbeat = Number.NEGATIVE_INFINITY;
    this.#wakeUp();
  }

  async catchUp(): Promise<void> {
    await this.#options.database.read((sql) => this.#look(sql));
    await this.#deliveries.idle;
  }

  async removeHub(hubId: string): Promise<void> {
    this.#hubs = await this.#options.database.writeIdempotently(async (sql) => {
      await removeHub(sql, hubId);
      return readHubs(sql);
    });
  }

  cleanUp(): Promise<void> {
    return this.#options.database.writeIdempotently(cleanUp);
  }

  async startupDone(): Promise<void> {
    // A connection that is lost has no lock.
    await this.#connection.unlockStartup().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    this.#wakeUp();
    await this.#running;
    await this.#deliveries.idle;
    await this.#connection[Symbol.asyncDispose]();
  }

  #wakeUp(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  async #run(): Promise<void> {
    const { timers, database } = this.#options;
    const { signal } = this.#stopped;
    let pause = RETRY_PAUSE.first;
    while (!signal.aborted) {
      const isAway = database.outage !== null;
      await timers.sleep(isAway ? pause : LOOK_INTERVAL, AbortSignal.any([signal, this.#wake.signal]));
      if (signal.aborted) return;
      try {
        if (database.outage === null) await this.#lookAndWriteHeartbeat();
        else await this.#return();
        pause = RETRY_PAUSE.first;
      } catch (error) {
        database.reportOutage(error);
        pause = isAway ? Math.min(pause * 2, RETRY_PAUSE.longest) : RETRY_PAUSE.first;
      }
    }
  }

  async #lookAndWriteHeartbeat(): Promise<void> {
    const now = this.#options.clock.now().uptime;
    // Shows too whether the connection still works that gets the notifications and holds the locks.
    await this.#look(this.#connection.sql);
    if (this.#rereadAt !== null && now >= this.#rereadAt) {
      this.#rereadAt = null;
      this.#deliver([ANYTHING]);
    }
    if (now - this.#lastHeartbeat >= HEARTBEAT_INTERVAL) await this.#writeHeartbeat();
  }

  /** A heartbeat is committed like anything else, so it shows whether the database can be written. */
  async #writeHeartbeat(): Promise<void> {
    const { database, hubId, clocks, clock } = this.#options;
    const hubs = await database.run(async (sql) => {
      if (await clocks.synchronize(sql)) this.#rereadAt = clock.now().uptime + CLOCK_STEP_DELAY;
      return writeHeartbeat(sql, hubId, this.#entry);
    });
    this.#lastHeartbeat = clock.now().uptime;
    const before = livingHubs(this.#hubs);
    this.#hubs = hubs;
    if (livingHubs(hubs) !== before) for (const watcher of this.#watchers) watcher.hubsChanged?.();
  }

  /** Uses the database again after it could not be used. */
  async #return(): Promise<void> {
    const { database, onReturning, hubId } = this.#options;
    // It may only have seemed to work, and still hold the lock.
    const formerProcess = this.#connection.process;
    await this.#connection[Symbol.asyncDispose]();
    this.#connection = await SiteConnection.open(this.#options, this.events, formerProcess);
    database.renewConnections();
    const lastSeen = this.#hubs.find(({ id }) => id === hubId)?.lastSeen ?? null;
    const former = { server: this.#server, lastSeen };
    const { server, mayHaveLost } = await database.run((sql) =>
      inTransaction(sql, () => checkServer(sql, hubId, former)),
    );
    await this.#writeHeartbeat();
    const isOtherServer = server !== this.#server;
    if (isOtherServer) this.#changes.forget();
    this.#server = server;
    const news = await this.#changes.look(this.#connection.sql, this.#options.clock.now().uptime);
    // Another server may have lost what this hub has read.
    this.#note(isOtherServer ? [ANYTHING] : news);
    this.#note(await database.endUnknownWrites());
    database.reportReturn();
    await onReturning();
    if (mayHaveLost) await database.write([ANYTHING], async () => true);
    this.#deliver();
    await this.#deliveries.idle;
    for (const watcher of this.#watchers) watcher.returned?.();
  }

  /** Looks for news, once for all notifications that arrive before the look begins. */
  #lookSoon(): void {
    if (this.#isLookPlanned) return;
    this.#isLookPlanned = true;
    const look = (sql: Statements) => {
      this.#isLookPlanned = false;
      return this.#look(sql);
    };
    // What can't be read now is found by the next look.
    void this.#options.database.read(look).catch(() => {
      this.#isLookPlanned = false;
    });
  }

  async #look(sql: Statements): Promise<void> {
    this.#deliver(await this.#changes.look(sql, this.#options.clock.now().uptime));
  }

  #note(news: readonly string[]): void {
    for (const entry of news) if (entry !== FENCE) this.#pending.add(entry);
  }

  /** Delivers news, one after another; those that come meanwhile are delivered together. */
  #deliver(news: readonly string[] = []): void {
    this.#note(news);
    if (this.#pending.has(RESTORED) && !this.#wasRestored) {
      this.#wasRestored = true;
      for (const watcher of this.#watchers) watcher.restored?.();
    }
    // The hub starts again, and reads everything.
    if (this.#wasRestored && this.#watchers.some(({ restored }) => restored !== undefined)) return;
    void this.#deliveries.run(async () => {
      const readers = this.#watchers.filter(({ news }) => news !== undefined);
      if (readers.length === 0 || this.#pending.size === 0) return;
      const pending = parseNews(this.#pending);
      this.#pending.clear();
      for (const reader of readers) await reader.news?.(pending).catch(() => undefined);
    });
  }
}

function livingHubs(hubs: readonly SiteHub[]): string {
  return hubs.flatMap(({ id, isAlive }) => (isAlive ? [id] : [])).join(' ');
}
