import type { Instant } from '../core/clock.ts';
import { damagedConnectionAdvice } from '../core/connections/connection.ts';
import { Failure } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { CredentialLocation } from '../core/portals/identity.ts';
import type { ConnectionEvent } from '../core/reports/history.ts';
import type { SiteNews } from '../core/site.ts';
import { type SignInTokens, StoredSetupAccess } from './access/setup-access.ts';
import { Appliances } from './appliances/appliances.ts';
import { RefusedRequests } from './appliances/refused-requests.ts';
import { Registrations } from './appliances/registrations.ts';
import { Sessions } from './appliances/sessions.ts';
import { Connections } from './connections/connections.ts';
import { GrantImports } from './connections/grant-imports.ts';
import { reconcileAppliances } from './declarations/declared-appliances.ts';
import {
  ALL_DECLARATIONS,
  type Declarations,
  declareConnection,
  migrateRenamedPortals,
  OwnDeclarations,
  type ReconcileContext,
  releaseUndeclaredConnections,
  warnAboutChangedScopes,
} from './declarations/declared-connections.ts';
import { Grants } from './grants/grants.ts';
import { createHubRanking } from './grants/refresh-schedule.ts';
import { TokenIssuer } from './grants/token-issuer.ts';
import { DeviceFlows } from './pairings/device-flows.ts';
import { PairingBatches } from './pairings/pairing-batches.ts';
import { Pairings } from './pairings/pairings.ts';
import { withResponseListeners } from './portal-availability.ts';
import type { BrokerStore, ConnectedPortal, ConnectedPortals, Environment, PairingTimes } from './ports.ts';
import { HistoryRecorder } from './reports/history-recorder.ts';
import { Notices } from './reports/notices.ts';
import { UsageRecorder } from './reports/usage-recorder.ts';
import { NewsApplier, NewsLook } from './site/news.ts';
import { PortalTimeProbe, ReferenceClock } from './time/reference-clock.ts';
import { Scheduler } from './time/scheduler.ts';

/**
 * How long a stop may take if grants are only in memory because the database of the site is away, in ms: less than
 * `TimeoutStopSec` of the service. A portal may accept no other refresh token than theirs.
 */
const SITE_STOP_TIME = 140_000;
/** The hub asks for the time between once and twice this after its start, in ms: see {@link planTimeProbes}. */
const TIME_PROBE_DELAY = 15_000;
const TIME_PROBE_TASK = 'portal time';

/** What the broker depends on, passed in so that tests can replace it. */
export interface BrokerOptions {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly portals: ConnectedPortals;
  readonly pairingTimes: PairingTimes;
  /** The connections and appliances that the configuration declares. */
  readonly declarations: Declarations;
  /**
   * Where a connection's refreshes lie in the fleet's schedule: from 0 to 1, always the same for a connection (see
   * `ScheduleInput`).
   */
  readonly jitterOffset: (connection: string) => number;
  readonly predecessor?: BrokerHandover | undefined;
}

/** What a broker hands over to its successor in the same process; everything else is in the store. */
export interface BrokerHandover {
  /** The ids of the appliances that the store held when the process started: see `LanService.existedBeforeStart`. */
  readonly previouslyKnown: ReadonlySet<string>;
  /** The clock with the confirmed time. */
  readonly referenceClock: ReferenceClock;
  /** For how many more ms any appliance may register; 0 if registration is closed. */
  readonly registrationOpenMs: number;
  /** How many appliances have registered since it was opened. */
  readonly registeredCount: number;
  /** When each portal last responded in normal service, by its name. */
  readonly portalsReached: ReadonlyMap<string, Instant>;
  readonly signInTokens: SignInTokens;
}

/**
 * The connections, their grants, the appliances and everything that manages them. Disposal waits for requests under way and stores their
 * results.
 */
export interface Broker extends AsyncDisposable {
  /** The environment of all parts; its `emit` also records each event in the history. */
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly connections: Connections;
  readonly appliances: Appliances;
  readonly scheduler: Scheduler;
  readonly referenceClock: ReferenceClock;
  readonly portalTimeProbe: PortalTimeProbe;
  readonly historyRecorder: HistoryRecorder;
  readonly usageRecorder: UsageRecorder;
  readonly grants: Grants;
  readonly grantImports: GrantImports;
  readonly tokenIssuer: TokenIssuer;
  readonly pairings: Pairings;
  readonly pairingBatches: PairingBatches;
  readonly deviceFlows: DeviceFlows;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly refusedRequests: RefusedRequests;
  readonly access: StoredSetupAccess;
  readonly notices: Notices;
  /** Looks for news of other hubs of the site before unknown credentials are rejected. */
  readonly newsLook: NewsLook;
  /** Takes over what other hubs of the site have changed. It does not reject; what fails is tried again. */
  applyNews(news: SiteNews): Promise<void>;
  /** Calls `listener` with all news of other hubs after the broker has applied them. */
  onNews(listener: (news: SiteNews) => Promise<void>): void;
  /** The ids of the appliances that the store held when the process started. */
  readonly previouslyKnown: ReadonlySet<string>;
  /** A configured portal. @param portal its name */
  portalOf(portal: string): ConnectedPortal | undefined;
  /** When each portal last responded in normal service since the process started, by its name. */
  readonly portalsReached: ReadonlyMap<string, Instant>;
  /** Where to correct the hub's credentials for a portal. @param portal its name */
  credentialLocationAt(portal: string): CredentialLocation;
  /** Resolves when the pairings of the last run have resumed. */
  readonly ready: Promise<void>;
  /** Resumes the pairings of the last run; call it when the hub is reachable. */
  resumePairings(): Promise<void>;
  /** The handover for the next broker in the same process. */
  handoverState(): BrokerHandover;
}

/**
 * Creates the broker from what the last run left in the store. This is its only composition root.
 * @throws Failure as {@link Store}; `config_invalid` if a declared appliance has the client_id of another one
 */
export async function openBroker(ports: BrokerOptions): Promise<Broker> {
  const { store, predecessor } = ports;
  const portalsReached = new Map(predecessor?.portalsReached);
  const portals = withResponseListeners(ports.portals, {
    onAvailable(portal) {
      portalsReached.set(portal, clock.now());
      grants.onPortalAvailable(portal);
    },
    onTime: (portal, time) => referenceClock.recordPortalTime(portal, time),
  });
  const { clock, timers, random, log, emit } = ports.environment;
  await using parts = new AsyncDisposableStack();
  const connections = await Connections.load(store, random, [...portals.names]);
  const appliances = await Appliances.load(store, random, connections);
  const nameOf = (id: string) => connections.byId(id)?.name ?? id;
  const previouslyKnown = predecessor?.previouslyKnown ?? new Set(appliances.list().map(({ id }) => id));
  await migrateRenamedPortals(connections, portals, store, log);
  const own = store.site === null ? ALL_DECLARATIONS : await OwnDeclarations.load(store);
  const context = {
    connections,
    appliances,
    own,
    identityOf: (portal: string) => portals.get(portal)?.identity,
    random,
    log,
  };
  // A connection is at a portal: what is declared waits until there is one.
  const reassignedIds = portals.names.length === 0 ? [] : await reconcile(ports.declarations, store, context);
  if (portals.names.length > 0) await own.save(ports.declarations);

  const scheduler = parts.use(new Scheduler({ clock, timers }));
  const referenceClock = new ReferenceClock({ clock, log }, predecessor?.referenceClock);
  const historyRecorder = parts.use(new HistoryRecorder({ clock, log }, store.history, scheduler, referenceClock));
  store.history.setSource(historyRecorder);
  const usageRecorder = parts.use(
    await UsageRecorder.load({
      environment: { clock, log },
      store,
      scheduler,
      referenceClock,
      usersOf: (connection) => appliances.usersOf(connection),
      exists: (appliance) => appliances.byId(appliance) !== undefined,
    }),
  );
  store.usage.setSource(usageRecorder);
  const environment: Environment = {
    ...ports.environment,
    emit(event: ConnectionEvent) {
      historyRecorder.record(event);
      emit(event);
    },
  };
  const portalOf = (id: string) => portals.get(connections.byId(id)?.portal ?? '');
  const isDamaged = (id: string) => connections.byId(id)?.damaged === true;
  const grants = parts.use(
    new Grants({
      environment,
      store,
      scheduler,
      referenceClock,
      portalOf,
      nameOf,
      isDamaged,
      jitterOffset: ports.jitterOffset,
      rankOf: createHubRanking(store.site),
      stopTime: store.site === null ? 0 : SITE_STOP_TIME,
    }),
  );
  store.watch({ hubsChanged: () => grants.onHubsChanged(), returned: () => void grants.onStoreReturned() });
  const grantImports = parts.use(
    new GrantImports({
      environment,
      store,
      connections,
      grants,
      referenceClock,
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const newsLook = new NewsLook(store, environment);
  const pairings = parts.use(
    new Pairings({
      environment,
      store,
      grants,
      referenceClock,
      nameOf,
      lookForNews: () => newsLook.take(),
      times: ports.pairingTimes,
      writeUnwritten: () => connections.writeUnwritten(),
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const pairingBatches = new PairingBatches({ environment, connections, appliances, grants, pairings });
  const notices = parts.use(await Notices.load({ environment, store, referenceClock }));
  await grants.load();
  warnAboutChangedScopes(connections, grants, log);
  const sessions = parts.use(await Sessions.load(store, scheduler, environment));
  const registrations = await Registrations.load({ environment, store, connections, appliances, scheduler });
  if (predecessor !== undefined) registrations.resume(predecessor.registrationOpenMs, predecessor.registeredCount);
  const access = await StoredSetupAccess.load(store, { ...environment, referenceClock }, predecessor?.signInTokens);
  store.watch({ returned: () => void access.onStoreWritable() });
  reportDamage(store, connections, (id) => appliances.byId(id)?.name ?? id, log);

  const newsApplier = parts.use(
    new NewsApplier({
      environment,
      store,
      connections,
      appliances,
      sessions,
      registrations,
      access,
      notices,
      grants,
      pairings,
    }),
  );
  const ready = Promise.withResolvers<void>();
  const owned = parts.move();
  const broker: Broker = {
    environment,
    store,
    previouslyKnown,
    portalsReached,
    ready: ready.promise,
    connections,
    appliances,
    scheduler,
    referenceClock,
    historyRecorder,
    usageRecorder,
    grants,
    grantImports,
    pairings,
    pairingBatches,
    sessions,
    registrations,
    refusedRequests: new RefusedRequests(environment, appliances),
    access,
    notices,
    newsLook,
    applyNews: (news) => newsApplier.apply(news),
    onNews: (listener) => newsApplier.onNews(listener),
    portalOf: (portal) => portals.get(portal),
    credentialLocationAt: (portal) => portals.get(portal)?.credentialLocation ?? { portal },
    tokenIssuer: new TokenIssuer(grants, environment),
    deviceFlows: new DeviceFlows(pairings, environment),
    portalTimeProbe: new PortalTimeProbe(environment, referenceClock, portals),
    async resumePairings() {
      planTimeProbes(broker);
      await pairings.load();
      pairingBatches.resume();
      store.watch({ news: (news) => newsApplier.apply(news) });
      await store.site?.startupDone();
      for (const id of reassignedIds) {
        await pairings.end(id);
        await pairings.clearFailures(id);
      }
      ready.resolve();
    },
    handoverState: () => ({
      previouslyKnown,
      referenceClock,
      portalsReached,
      registrationOpenMs: registrations.remainingOpenMs,
      registeredCount: registrations.registeredCount,
      signInTokens: access.signInTokens,
    }),
    async [Symbol.asyncDispose]() {
      // Stop refreshes first: one that started while disposal waits for a code exchange would have to be awaited too.
      grants.stop();
      await owned.disposeAsync();
    },
  };
  return broker;
}

/**
 * Soon after a start without NTP, asks each portal for the time whose tokens are from before this boot: otherwise nobody
 * knows whether they have expired until an appliance asks.
 */
function planTimeProbes({ environment, scheduler, connections, grants, portalTimeProbe }: Broker): void {
  const { clock, random } = environment;
  scheduler.plan(TIME_PROBE_TASK, clock.now().uptime + TIME_PROBE_DELAY * (1 + random.fraction()), () => {
    for (const { id, portal } of connections.list()) {
      const managed = grants.get(id);
      if (managed !== undefined && grants.schedule.age(managed) === null) void portalTimeProbe.confirm(portal);
    }
  });
}

/**
 * Makes the stored connections and appliances match the configuration.
 * @returns the ids of the connections that moved to another portal
 * @throws Failure `config_invalid`, or as {@link Store}
 */
async function reconcile(
  declarations: Declarations,
  store: BrokerStore,
  context: ReconcileContext,
): Promise<readonly string[]> {
  const movedIds: string[] = [];
  for (const declaration of declarations.connections) {
    // Any device may have registered with this name, and must not share the login.
    await context.appliances.releaseName(declaration.name).catch((error: unknown) => {
      if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
    });
    const declared = await declareConnection(declaration, context.random.uuid(), context);
    if (declared?.hasMoved) movedIds.push(declared.id);
  }
  movedIds.push(...(await reconcileAppliances(declarations.appliances, declarations.file, context)));
  const hasGrant = async (id: string) => (await store.grants.get(id)) !== null || store.grants.damaged.has(id);
  await releaseUndeclaredConnections(declarations, hasGrant, context);
  return movedIds;
}

/** Logs which parts of the store are damaged. */
function reportDamage(
  store: BrokerStore,
  connections: Connections,
  applianceName: (appliance: string) => string,
  log: Log,
): void {
  for (const id of store.grants.damaged) log.error('grant_damaged', { connection: connections.byId(id)?.name ?? id });
  for (const { name, damaged } of connections.list()) {
    if (damaged) log.error('connection_damaged', { connection: name, what_to_do: damagedConnectionAdvice(name) });
  }
  for (const id of store.registry.damagedAppliances) {
    log.error('appliance_damaged', {
      appliance: applianceName(id),
      what_to_do: 'its entry was damaged or changed: remove it, add it again and pair it',
    });
  }
  for (const id of store.sessions.rejected) {
    log.error('session_discarded', { appliance: applianceName(id) });
  }
  if (store.invites.rejected.size > 0) log.error('invites_discarded');
}
