import { createLanService } from '../broker/lan-service.ts';
import { openBroker } from '../broker/open-broker.ts';
import { PortalClients } from '../broker/portal-clients.ts';
import type { Environment } from '../broker/ports.ts';
import { watchClock } from '../broker/time/clock-watch.ts';
import { CaRotation } from '../certificates/ca-rotation.ts';
import { HubLeaf } from '../certificates/leaf.ts';
import { permittedNames } from '../certificates/permitted-names.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Administration } from '../core/administration.ts';
import type { NoticeReport } from '../core/health/notice.ts';
import type { Log } from '../core/log.ts';
import type { ReloadControl } from '../core/reload.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import { openIngressServer } from '../lan/ingress-server.ts';
import type { ListeningSocketPool } from '../lan/listening-socket-pool.ts';
import { openLocalServer } from '../lan/local-server.ts';
import { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import { startLanServer } from '../lan/server.ts';
import { AddressChangeHandler } from '../mdns/networks/address-change-handler.ts';
import { Counters } from '../metrics/counters.ts';
import { openHooks } from '../notify/hooks.ts';
import { translateNotice } from '../page/notice-text.ts';
import { openPages } from '../page/pages.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { createNtpCheck } from '../system/ntp.ts';
import { systemRandom } from '../system/random.ts';
import { yieldToEventLoop } from '../system/slices.ts';
import { version } from '../system/version.ts';
import { openHubAdministration } from './administration.ts';
import { openControlSocket } from './control-socket.ts';
import { drain, type HandoverState, hasSameAdvertisement } from './handover.ts';
import { createHubAdvertiser } from './hub-advertiser.ts';
import { HubEndpoints, hubAddresses } from './hub-endpoints.ts';
import { HubEvents } from './hub-events.ts';
import { hubHostNames, jitterOffsetFor } from './identity.ts';
import { metricsContext, openMetricsServer } from './metrics.ts';
import { openNetwork } from './network.ts';
import { openState } from './open-state.ts';
import { pairOnStart } from './pair-on-start.ts';
import { AddedPortals } from './portals/added-portals.ts';
import { connectPortals } from './portals/connect-portals.ts';
import { openStoreUpkeep } from './store-upkeep.ts';

/** A running hub. Disposing of it sends the mDNS goodbye, waits for requests to the portal, and closes the store. */
export interface Hub extends AsyncDisposable {
  readonly administration: Administration;
  readonly controlSocket: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /**
   * Resolves when the hub must be disposed of and started again, because its store has another state than its memory.
   */
  readonly restartRequested: Promise<void>;
  /** How long the next planned task has been due, in ms on the boot clock. */
  readonly overdueMs: number;
  /**
   * Call this before disposing of a hub that another one replaces. Starts no further refresh, and waits until requests
   * to the portal have ended and their results are on disk. The hub still issues tokens meanwhile.
   * @param next the configuration of the next hub
   * @returns what the next hub needs
   */
  handOver(next: Configuration): Promise<HandoverState>;
}

/** After a start the hub asks portals only when it has done what cannot wait, in ms. */
const CLIENT_CHECK_DELAY = 30_000;

/** The options of a hub in a daemon that outlives it. */
export interface HubOptions {
  /** What the previous hub of this process has left. */
  readonly before?: HandoverState | undefined;
  readonly reloads?: ReloadControl;
}

/**
 * Starts a hub. This is the composition root: only here are the parts joined.
 * @param sockets sockets that outlive the hub; those that it does not use are closed when it has started
 * @throws Failure with the reason in one line; nothing is left running then
 */
export async function startHub(
  configuration: Configuration,
  log: Log,
  sockets?: ListeningSocketPool,
  { before, reloads }: HubOptions = {},
): Promise<Hub> {
  const { lan: lanConfiguration, name, warnings = [] } = configuration;
  for (const detail of warnings) log.warn('configuration_warning', { detail });
  const events = new HubEvents(log);
  const counters = before?.counters ?? new Counters();
  events.subscribe(counters.record);
  const environment: Environment = {
    clock: systemClock(),
    timers: systemTimers,
    random: systemRandom,
    log,
    emit: events.emit,
  };
  const { clock, timers, random } = environment;
  const started = before?.startedAt ?? clock.now();
  await using parts = new AsyncDisposableStack();

  const { store, local, identity } = await openState(configuration, environment, parts);
  // A reload does all of this beside its clients and the watchdog, so it takes several turns of the event loop.
  await yieldToEventLoop();
  const { lan, listening, opened, ports } = await openNetwork(lanConfiguration, timers, sockets, parts);
  const added = await AddedPortals.load(store, configuration.portals, log);
  const configured = [...configuration.portals, ...added.portals];
  const redirects = { timers, random, address: () => lan.current.address?.address ?? null, httpPort: ports.http };
  const portals = parts.use(await connectPortals(configured, { ...redirects, clock, store, log }));

  const broker = parts.use(
    await openBroker({
      environment,
      store,
      portals,
      pairingTimes: configuration.pairing,
      declarations: {
        connections: configuration.connections,
        appliances: configuration.appliances,
        file: configuration.file,
      },
      jitterOffset: (connection) => jitterOffsetFor(store.site?.siteId ?? identity.id, connection),
      predecessor: before?.broker,
    }),
  );
  const { connections, appliances, scheduler, referenceClock: portalClock, grants, pairings, access, notices } = broker;
  events.subscribe(() => notices.scheduleCheck());

  const portalClients = parts.use(new PortalClients(environment, store, portals.clients));
  events.subscribe(({ kind, connection, ...event }) => {
    const portal = connections.byId(connection)?.portal ?? '';
    if (kind === 'paired' || kind === 'refreshed') portalClients.accept(portal);
    else if ('reason' in event && publicReason(event.reason) === 'misconfigured') portalClients.reject(portal);
  });

  await yieldToEventLoop();
  const names = hubHostNames(identity.id);
  const leaf = await HubLeaf.open({
    environment,
    scheduler,
    portalClock,
    identity,
    store,
    names,
    addresses: () => lan.current.addresses,
    custom: lanConfiguration.certificate,
  });
  const endpoints = new HubEndpoints({ name, id: identity.id }, lan, leaf, ports);
  const siteId = store.site?.siteId ?? null;
  const advertiser = createHubAdvertiser({ environment, name, identity, siteId, leaf, endpoints });
  const announce = async () => {
    if (lanConfiguration.mdns) await advertiser.update(lan.current);
  };
  const restarting = Promise.withResolvers<void>();
  const upkeep = openStoreUpkeep(
    {
      environment,
      store,
      local,
      counters,
      broker,
      onEvent: events.subscribe.bind(events),
      restart: () => restarting.resolve(),
      ownSiteEntry: () => ({ name, address: endpoints.address, version: version() }),
    },
    parts,
  );
  const rotation = new CaRotation({
    environment,
    scheduler,
    portalClock,
    ca: identity.ca,
    hasCustomCertificate: lanConfiguration.certificate !== null,
    anchor: () => leaf.current.anchor,
    permittedNames: () => permittedNames(names, hubAddresses(lanConfiguration)),
    reissueLeaf: () => leaf.reissue(),
    onRotated: () =>
      void broker.ready.then(() => {
        void announce();
        upkeep.requestSnapshot();
      }),
  });
  leaf.onAnchorChange(() => void announce());
  broker.onNews(async ({ settings, all }) => {
    if (!all && settings.size === 0) return;
    if ((await identity.ca.isReplaced()) || (await added.isReplaced())) restarting.resolve();
  });
  store.watch({
    restored: () => {
      log.warn('site_restored');
      restarting.resolve();
    },
  });

  const usedAssertions = before?.usedAssertions ?? new AssertionReplayCache();
  const service = createLanService(broker, {
    started,
    hub: { id: identity.id, name, version: version() },
    caFingerprint: () => endpoints.fingerprint(),
    tokenRequested: (appliance, kind) => counters.tokenRequested(appliance, kind),
  });

  const hooks = parts.use(openHooks(configuration.notify, { clock, timers, random, log }));
  const withSender = (report: NoticeReport) => {
    const sender = endpoints.noticeSender();
    return { ...translateNotice(report, configuration.notify.language, broker, sender.page), hub: sender };
  };
  const administration = openHubAdministration({
    broker,
    startedAt: started,
    endpoints,
    configFile: configuration.file,
    testMode: configuration.testMode === true,
    caRotation: rotation,
    leaf,
    tryHooks: (report) => hooks.sendTest(withSender(report)),
    portalContext: { ...redirects, portals, portalClients, configured, added, httpsPort: ports.https },
    store,
    local: upkeep.local,
    advertiser,
    restart: () => restarting.resolve(),
    reloads,
  });

  await yieldToEventLoop();
  const pages = openPages({
    service,
    administration,
    access,
    hubName: name,
    ready: broker.ready,
    log,
    clock,
    timers,
    random,
    ingressUsers: configuration.ingress?.users ?? [],
    sendsNotices: configuration.notify.command !== null || configuration.notify.webhook !== null,
  });
  const lanServer = parts.use(
    await startLanServer({
      service,
      pages,
      hostNames: () => leaf.names,
      ports: opened,
      ca: () => rotation.report(),
      leaf: leaf.current.pem,
      usedAssertions,
      log,
      clock,
      timers,
    }),
  );
  const { ingress, local: localPort, metrics } = configuration;
  const plain = { sockets: listening, log, clock, timers };
  if (ingress !== null) parts.use(await openIngressServer({ ...ingress, ...plain, pages }));
  if (localPort !== null) {
    const page = () => endpoints.endpoint('');
    ports.local = parts.use(await openLocalServer({ ...plain, port: localPort, service, page, usedAssertions }));
  }
  parts.defer(() => pages.close());
  leaf.keepCurrent(lanServer);
  // Disposed of before the server, so that the goodbye is sent first.
  parts.use(advertiser);
  const socket = { path: configuration.controlSocket, administration, log };
  parts.use(await openControlSocket(socket, timers));
  if (metrics !== null) {
    const context = metricsContext(broker, administration, counters);
    const hostNames = () => leaf.names;
    ports.metrics = parts.use(await openMetricsServer({ ...metrics, ...plain, ...context, hostNames }));
  }
  const addressChanges = parts.use(
    new AddressChangeHandler({
      address: () => endpoints.address,
      handlers: [
        () => pairings.onAddressChanged(),
        (moved) => moved && lan.current.address !== null && grants.onNetworkChanged(),
        () => leaf.reissue(),
        announce,
        () => upkeep.onAddressChanged(),
      ],
      log,
    }),
  );

  await broker.resumePairings();
  upkeep.start();
  lan.start({ onChange: () => addressChanges.notify(), onTopologyChange: () => void announce() });
  parts.use(
    watchClock({
      environment,
      isSynchronized: createNtpCheck(),
      onSet() {
        grants.onClockSet();
        pairings.onClockSet();
        upkeep.onClockSet();
      },
      onSynchronized: () => portalClock.recordNtpTime(),
    }),
  );
  void announce();
  if (configuration.pairing.onStart && store.writeProblem === null)
    await pairOnStart(connections, appliances, grants, pairings, log);
  if (lan.current.address === null && lanConfiguration.address !== 'auto') {
    log.warn('lan_address_missing', { address: lanConfiguration.address });
  }
  notices.start(
    () => administration.noticeFacts(),
    (report) => hooks.enqueue(withSender(report)),
  );
  // In test mode the portal is the hub's own.
  if (configuration.testMode !== true) portalClients.start(before === undefined ? CLIENT_CHECK_DELAY : 0);
  sockets?.closeUnclaimed();
  log.info('hub_started', {
    name,
    id: identity.id,
    version: version(),
    address: endpoints.address,
    http_port: ports.http,
    https_port: ports.https,
    control_socket: configuration.controlSocket,
    appliances: appliances.list().length,
  });
  if (!access.hadSignIns) {
    log.info('page_never_opened', { what_to_do: '"latchkey setup-code" shows the setup code that opens it' });
  }

  const ended = new AbortController();
  const resources = parts.move();
  return {
    administration,
    controlSocket: configuration.controlSocket,
    restartRequested: restarting.promise,
    httpPort: ports.http,
    httpsPort: ports.https,
    get overdueMs() {
      return scheduler.overdue;
    },
    async handOver(next) {
      await drain(broker, timers, ended.signal);
      // While the hub still issues tokens: a hook that hangs would keep appliances waiting for the next hub.
      await hooks[Symbol.asyncDispose]();
      // A hub that must stop meanwhile has no successor and sends its goodbye.
      if (!ended.signal.aborted && hasSameAdvertisement(configuration, next)) advertiser.skipGoodbye();
      return { startedAt: started, broker: broker.handoverState(), usedAssertions, counters };
    },
    async [Symbol.asyncDispose]() {
      ended.abort();
      grants.stop();
      await resources.disposeAsync();
      log.info('hub_stopped');
    },
  };
}
