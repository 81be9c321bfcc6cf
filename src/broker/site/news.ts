import type { Clock, Timers } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { ALL_NEWS, type SiteNews } from '../../core/site.ts';
import { withTimeout } from '../../system/clock.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { StoredSetupAccess } from '../access/setup-access.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { Registrations } from '../appliances/registrations.ts';
import type { Sessions } from '../appliances/sessions.ts';
import type { Connections } from '../connections/connections.ts';
import type { Grants } from '../grants/grants.ts';
import type { Pairings } from '../pairings/pairings.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { Notices } from '../reports/notices.ts';

/** The shortest time between two looks, in ms: anybody can send credentials that the hub does not know. */
const MIN_LOOK_INTERVAL = 1000;
/** A request waits at most this long for a look, in ms. */
const MAX_LOOK_WAIT = 3000;

/**
 * Looks for what other hubs of a site have changed a moment ago, before credentials that this hub does not know are
 * rejected. Requests that arrive within a second share one look, which begins after the last of them has arrived.
 */
export class NewsLook {
  readonly #store: Pick<BrokerStore, 'catchUp' | 'writeProblem'>;
  readonly #environment: { readonly clock: Clock; readonly timers: Timers };
  /** Whether the store has said that there are no other hubs. */
  #isAlone = false;
  #lastBegun = Number.NEGATIVE_INFINITY;
  /** The look that has not begun yet. */
  #next: Promise<void> | null = null;

  constructor(
    store: Pick<BrokerStore, 'catchUp' | 'writeProblem'>,
    environment: { readonly clock: Clock; readonly timers: Timers },
  ) {
    this.#store = store;
    this.#environment = environment;
  }

  /**
   * @param deadline when the caller needs to go on at the latest, on the boot clock in ms
   * @returns whether it has looked, so that the credentials may be known now; false without a site
   */
  async take(deadline = Number.POSITIVE_INFINITY): Promise<boolean> {
    if (this.#isAlone || this.#store.writeProblem !== null) return false;
    this.#next ??= this.#plan();
    const { clock, timers } = this.#environment;
    await withTimeout(this.#next, Math.min(MAX_LOOK_WAIT, deadline - clock.now().uptime), timers);
    return !this.#isAlone;
  }

  async #plan(): Promise<void> {
    const { clock, timers } = this.#environment;
    const wait = this.#lastBegun + MIN_LOOK_INTERVAL - clock.now().uptime;
    await (wait > 0 ? timers.sleep(wait) : undefined);
    this.#lastBegun = clock.now().uptime;
    this.#next = null;
    // While the database is away, what this hub knows counts.
    this.#isAlone = !(await this.#store.catchUp().catch(() => true));
  }
}

/** After news could not be applied, everything is read again after this long, in ms. */
const RETRY_DELAY = 3000;

/** The parts of the broker that keep in memory what the hubs of a site share. */
interface NewsParts {
  readonly environment: Environment;
  readonly store: Pick<BrokerStore, 'registry' | 'writeProblem'>;
  readonly connections: Connections;
  readonly appliances: Appliances;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly access: StoredSetupAccess;
  readonly notices: Notices;
  readonly grants: Grants;
  readonly pairings: Pairings;
}

/** The parts, as the log names them. */
type NewsPart = 'registry' | 'sessions' | 'registrations' | 'access' | 'notices' | 'grants' | 'pairings' | 'hub';

/**
 * Takes over in memory what other hubs of a site have changed. It writes nothing and emits no events: the hub that made
 * a change has done both.
 */
export class NewsApplier implements AsyncDisposable {
  readonly #parts: NewsParts;
  readonly #deduplicator: LogDeduplicator;
  #hubListener: (news: SiteNews) => Promise<void> = async () => undefined;
  readonly #queue = new SerialQueue();
  #disarmRetry: (() => void) | null = null;
  #ended = false;

  constructor(parts: NewsParts) {
    this.#parts = parts;
    this.#deduplicator = new LogDeduplicator(parts.environment.clock);
  }

  /** Calls `listener` with all news after the broker has applied them. */
  onNews(listener: (news: SiteNews) => Promise<void>): void {
    this.#hubListener = listener;
  }

  /** Applies news after those before. It does not reject: what fails is logged, and everything is read again soon. */
  apply(news: SiteNews): Promise<void> {
    return this.#queue.run(() => this.#apply(news));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#disarmRetry?.();
    await this.#queue.idle;
  }

  async #apply(news: SiteNews): Promise<void> {
    if (this.#ended) return;
    const { sessions, registrations, access, notices, grants, pairings } = this.#parts;
    let isComplete = true;
    // An error in one part must not keep the others from what they need to know, such as a removed appliance.
    const run = async (part: NewsPart, work: () => Promise<void>) => {
      try {
        await work();
        this.#deduplicator.recordResolution(part);
      } catch (error) {
        isComplete = false;
        this.#logFailure(part, error);
      }
    };
    const { all } = news;
    let removed: RemovedRecords = { connections: [], appliances: [] };
    const isRegistryAffected = all || news.registry;
    if (isRegistryAffected) {
      await run('registry', async () => {
        removed = await applyRegistryNews(this.#parts);
      });
    }
    if (isRegistryAffected || all || news.sessions.size > 0) {
      await run('sessions', async () => {
        sessions.forget(removed.appliances);
        if (all || news.sessions.size > 0) await sessions.applyNews(all ? null : news.sessions);
      });
    }
    if (isRegistryAffected || news.invites) {
      await run('registrations', () => registrations.applyNews(removed.appliances, all || news.invites));
    }
    if (all || news.settings.size > 0) {
      await run('access', () => access.applyNews(news));
      await run('notices', () => notices.applyNews(news));
    }
    await run('grants', async () => {
      for (const id of removed.connections) grants.stopManaging(id);
      if (all || news.grants.size > 0) await grants.applyNews(news.grants, all);
    });
    const affected = new Set([...news.pairings, ...this.#pairingsOf(removed)]);
    if (all || affected.size > 0) await run('pairings', () => pairings.applyNews(affected, all));
    await run('hub', () => this.#hubListener(news));
    notices.scheduleCheck();
    if (!isComplete) this.#scheduleRetry();
  }

  /** The ids of the pairings of removed connections, and of the device flows of removed appliances. */
  #pairingsOf({ connections, appliances }: RemovedRecords): string[] {
    if (connections.length + appliances.length === 0) return [];
    const [connectionIds, applianceIds] = [new Set(connections), new Set(appliances)];
    const runs = this.#parts.pairings.filter(
      ({ pairing: { connection, device } }) =>
        connectionIds.has(connection) || (device !== null && applianceIds.has(device.appliance)),
    );
    return runs.map(({ pairing }) => pairing.id);
  }

  #logFailure(part: NewsPart, error: unknown): void {
    const { store, environment } = this.#parts;
    // An outage of the database is logged as such, and everything is read again after it.
    const isLogged = store.writeProblem === null && this.#deduplicator.recordOccurrence(part, part) !== null;
    const level = isLogged ? 'error' : 'debug';
    environment.log.at(level, 'site_news_not_applied', { part, error: messageOf(error) });
  }

  #scheduleRetry(): void {
    if (this.#ended || this.#disarmRetry !== null) return;
    this.#disarmRetry = this.#parts.environment.timers.after(RETRY_DELAY, () => {
      this.#disarmRetry = null;
      void this.apply(ALL_NEWS);
    });
  }
}

/** How often the records are read again if they do not fit together. */
const MAX_READS = 3;

/** Ids of what another hub has removed. */
interface RemovedRecords {
  readonly connections: readonly string[];
  readonly appliances: readonly string[];
}

/**
 * Takes over the connections and appliances of the store, all of them at one moment.
 * @returns what other hubs have removed
 * @throws Failure as the store
 */
function applyRegistryNews({ store, connections, appliances }: NewsParts): Promise<RemovedRecords> {
  return connections.exclusively(async () => {
    // The two kinds are read one after the other, so a change in between may leave an appliance without its connection.
    for (let reads = 1; ; reads++) {
      const storedAppliances = await store.registry.appliances();
      const storedConnections = await store.registry.connections();
      const found = new Set(storedConnections.map(({ id }) => id));
      if (reads < MAX_READS && !storedAppliances.every(({ connection }) => found.has(connection))) continue;
      return { connections: connections.replace(storedConnections), appliances: appliances.replace(storedAppliances) };
    }
  });
}
