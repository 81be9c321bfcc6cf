import type { Environment } from '../broker/environment.ts';
import { createLanService } from '../broker/lan-service.ts';
import { openBroker } from '../broker/open-broker.ts';
import { watchClock } from '../broker/time/clock-watch.ts';
import { CaRotation } from '../certificates/ca-rotation.ts';
import { HubLeaf } from '../certificates/leaf.ts';
import { permittedNames } from '../certificates/permitted-names.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Administration } from '../core/administration.ts';
import type { Log } from '../core/log.ts';
import type { NoticeReport } from '../core/reports/notice.ts';
import type { ListeningSocketPool } from '../lan/listening-socket-pool.ts';
import { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import { startLanServer } from '../lan/server.ts';
import { AddressChangeHandler } from '../mdns/networks/address-change-handler.ts';
import { Counters } from '../metrics/counters.ts';
import { openHooks } from '../notify/hooks.ts';
import { openPages } from '../page/pages.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { createNtpCheck } from '../system/ntp.ts';
import { systemRandom } from '../system/random.ts';
import { version } from '../system/version.ts';
import { openHubAdministration, type ReloadControl } from './administration.ts';
import { openControlSocket } from './control-socket.ts';
import { DiskSpaceMonitor } from './disk-space-monitor.ts';
import { drain, type HandoverState, hasSameAdvertisement } from './handover.ts';
import { createHubAdvertiser } from './hub-advertiser.ts';
import { HubEndpoints, hubAddresses } from './hub-endpoints.ts';
import { HubEvents } from './hub-events.ts';
import { hubHostNames, jitterOffsetFor } from './identity.ts';
import { openMetrics } from './metrics.ts';
import { openNetwork } from './network.ts';
import { openState } from './open-state.ts';
import { pairOnStart } from './pair-on-start.ts';
import { connectPortals } from './portals.ts';
import { StoreMaintenance } from './store-maintenance.ts';

/** A running hub. Disposing of it says goodbye, lets what was sent to the portal end, and closes the store. */
export interface Hub extends AsyncDisposable {
  readonly administration: Administration;
  readonly controlSocket: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Resolves when the hub is to be disposed of and started again: its store holds another state than the hub knows of. */
  readonly restartRequested: Promise<void>;
  /** For how long the next thing that was planned has been due, in ms on the boot clock. */
  readonly overdueMs: number;
  /** Calls it whenever something has happened to an appliance, so that its state may be another one. */
  onEvent(listener: () => void): void;
  /**
   * To be called before the hub is disposed of, where another one takes its place: waits for what was sent to the portal, and
   * until it is written down, and hands out tokens meanwhile, but starts no further refresh.
   * @param next what the next one runs with
   * @returns what the next one is to know
   */
  handOver(next: Configuration): Promise<HandoverState>;
}

/** What makes a hub part of a daemon that outlives it. */
export interface HubOptions {
  /** What the hub before it in the same process has left. */
  readonly before?: HandoverState | undefined;
  readonly reloads?: ReloadControl;
}

/**
 * Starts a hub: here, and only here, the parts are joined.
 * @param sockets where they outlive the hub; those that it does not want are closed when it is up
 * @throws Failure with the reason in one line; nothing is left running then
 */
export async function startHub(
  configuration: Configuration,
  log: Log,
  sockets?: ListeningSocketPool,
  { before, reloads }: HubOptions = {},
): Promise<Hub> {
  const { lan: lanConfiguration, name } = configuration;
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

  const { store, identity, keyRotation } = await openState(configuration, environment, parts);
  const { lan, opened, ports } = await openNetwork(lanConfiguration, timers, sockets, parts);
  const portals = parts.use(
    connectPortals(configuration.portals, () => lan.current.address?.address ?? null, ports.http),
  );

  const broker = parts.use(
    await openBroker({
      environment,
      store,
      portals,
      pairingTimes: configuration.pairing,
      declarations: { appliances: configuration.appliances, file: configuration.file },
      jitterOffset: (appliance) => jitterOffsetFor(identity.id, appliance),
      predecessor: before?.broker,
    }),
  );
  const { appliances, scheduler, referenceClock: portalClock, grants, pairings, access, notices } = broker;
  events.subscribe(() => notices.scheduleCheck());
  const room = parts.use(new DiskSpaceMonitor(store.files.directory, timers, grants));
  events.subscribe(() => room.startIfNeeded());

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
  const place = new HubEndpoints({ name, id: identity.id }, lan, leaf, ports);
  const advertising = createHubAdvertiser({ environment, configuration, identity, lan, leaf, endpoints: place });
  const restarting = Promise.withResolvers<void>();
  const housekeeping = new StoreMaintenance(store, environment, () => restarting.resolve());
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
        void advertising.announce();
        housekeeping.requestSnapshot();
      }),
  });
  leaf.onAnchorChange(() => void advertising.announce());

  const usedAssertions = before?.usedAssertions ?? new AssertionReplayCache();
  const service = createLanService(broker, {
    started,
    caFingerprint: () => place.fingerprint(),
    tokenRequested: (appliance, kind) => counters.tokenRequested(appliance, kind),
  });

  const hooks = parts.use(openHooks(configuration.notify, { timers, log }));
  const signed = (report: NoticeReport) => ({ ...report, hub: place.noticeSender() });
  const administration = openHubAdministration({
    broker,
    startedAt: started,
    endpoints: place,
    configFile: configuration.file,
    testMode: configuration.testMode === true,
    caRotation: rotation,
    tryHooks: (report) => hooks.sendTest(signed(report)),
    store,
    keyRotation,
    takeSnapshot: () => housekeeping.takeSnapshot(),
    advertising,
    restart: () => restarting.resolve(),
    reloads,
  });

  const pages = openPages({
    ...{ service, administration, access, hubName: name, ready: broker.ready },
    ...{ log, clock, timers, random },
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
  parts.defer(() => pages.close());
  leaf.keepCurrent(lanServer);
  // Disposed of before the server: neighbours hear the goodbye first.
  parts.use(advertising);
  const socket = { path: configuration.controlSocket, administration, log };
  parts.use(await openControlSocket(socket, timers));
  const metrics = await openMetrics({
    environment,
    listen: configuration.metrics,
    administration,
    appliances,
    portalClock,
    counters,
    overdueMs: () => scheduler.overdue,
    names: () => leaf.names,
  });
  if (metrics !== null) parts.use(metrics);
  ports.metrics = metrics;
  const follower = parts.use(
    new AddressChangeHandler({
      address: () => place.address,
      handlers: [
        () => pairings.onAddressChanged(),
        (moved) => moved && lan.current.address !== null && grants.onNetworkChanged(),
        () => leaf.reissue(),
        () => advertising.announce(),
      ],
      log,
    }),
  );

  await broker.resumePairings();
  parts.use(housekeeping).start();
  lan.start({ onChange: () => follower.notify(), onTopologyChange: () => void advertising.announce() });
  parts.use(
    watchClock({
      environment,
      isSynchronized: createNtpCheck(),
      onSet() {
        grants.onClockSet();
        pairings.onClockSet();
        housekeeping.onClockSet();
      },
      onSynchronized: () => portalClock.recordNtpTime(),
    }),
  );
  void advertising.announce();
  if (configuration.pairing.onStart && store.writeProblem === null)
    await pairOnStart(appliances, grants, pairings, log);
  if (lan.current.address === null && lanConfiguration.address !== 'auto') {
    log.warn('lan_address_missing', { address: lanConfiguration.address });
  }
  notices.start(
    () => administration.noticeFacts(),
    (report) => hooks.enqueue(signed(report)),
  );
  sockets?.closeUnclaimed();
  log.info('hub_started', {
    name,
    id: identity.id,
    version: version(),
    address: place.address,
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
    onEvent: (listener) => events.subscribe(listener),
    async handOver(next) {
      await drain(broker, timers, ended.signal);
      // While tokens are handed out still: one that hangs would keep appliances waiting for the next hub.
      await hooks[Symbol.asyncDispose]();
      // A hub that is to end meanwhile says goodbye.
      if (!ended.signal.aborted && hasSameAdvertisement(configuration, next)) advertising.skipGoodbye();
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
