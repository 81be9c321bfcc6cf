import type { Environment } from '../broker/environment.ts';
import { openLanService } from '../broker/lan-service.ts';
import { openBroker } from '../broker/open-broker.ts';
import { watchClock } from '../broker/time/clock-watch.ts';
import { CaRotation } from '../certificates/ca-rotation.ts';
import { HubLeaf } from '../certificates/leaf.ts';
import { permittedNames } from '../certificates/permitted-names.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Administration } from '../core/administration.ts';
import type { Log } from '../core/log.ts';
import type { NoticeReport } from '../core/reports/notice.ts';
import type { ListeningSockets } from '../lan/listening-sockets.ts';
import { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import { serveLan } from '../lan/server.ts';
import { LanFollower } from '../mdns/networks/lan-follower.ts';
import { Counters } from '../metrics/counters.ts';
import { openHooks } from '../notify/hooks.ts';
import { openPages } from '../page/pages.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { ntpWatch } from '../system/ntp.ts';
import { systemRandom } from '../system/random.ts';
import { version } from '../system/version.ts';
import { type HubReloads, openHubAdministration } from './administration.ts';
import { openAdvertising } from './advertising.ts';
import { openControlSocket } from './control-socket.ts';
import { drain, type HandoverState, isAnnouncedAlike } from './handover.ts';
import { Housekeeping } from './housekeeping.ts';
import { HubEvents } from './hub-events.ts';
import { hubNames, jitterOffsetOf } from './identity.ts';
import { openMetrics } from './metrics.ts';
import { openNetwork } from './network.ts';
import { openState } from './open-state.ts';
import { pairOnStart } from './pair-on-start.ts';
import { HubPlace, hubAddresses } from './place.ts';
import { connectPortals } from './portals.ts';
import { RoomWatch } from './room-watch.ts';

/** A running hub. Disposing of it says goodbye, lets what was sent to the portal end, and closes the store. */
export interface Hub extends AsyncDisposable {
  readonly administration: Administration;
  readonly controlSocket: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Resolves when the hub is to be disposed of and started again: its store holds another state than the hub knows of. */
  readonly restartWanted: Promise<void>;
  /** For how long the next thing that was planned has been due, in ms on the boot clock. */
  readonly overdue: number;
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
  readonly reloads?: HubReloads;
}

/**
 * Starts a hub: here, and only here, the parts are joined.
 * @param sockets where they outlive the hub; those that it does not want are closed when it is up
 * @throws Failure with the reason in one line; nothing is left running then
 */
export async function startHub(
  configuration: Configuration,
  log: Log,
  sockets?: ListeningSockets,
  { before, reloads }: HubOptions = {},
): Promise<Hub> {
  const { lan: lanConfiguration, name } = configuration;
  const events = new HubEvents(log);
  const counters = before?.counters ?? new Counters();
  events.listen(counters.tell);
  const environment: Environment = {
    clock: systemClock(),
    timers: systemTimers,
    random: systemRandom,
    log,
    emit: events.emit,
  };
  const { clock, timers, random } = environment;
  const started = before?.started ?? clock.now();
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
      declared: { appliances: configuration.appliances, file: configuration.file },
      jitterOffset: (appliance) => jitterOffsetOf(identity.id, appliance),
      before: before?.broker,
    }),
  );
  const { appliances, scheduler, portalClock, grants, pairings, access, notices } = broker;
  events.listen(() => notices.changed());
  const room = parts.use(new RoomWatch(store.files.directory, timers, grants));
  events.listen(() => room.look());

  const names = hubNames(identity.id);
  const leaf = await HubLeaf.open({
    environment,
    scheduler,
    portalClock,
    identity,
    store,
    names,
    addresses: () => lan.current.addresses,
    own: lanConfiguration.certificate,
  });
  const place = new HubPlace({ name, id: identity.id }, lan, leaf, ports);
  const advertising = openAdvertising({ environment, configuration, identity, lan, leaf, place });
  const restarting = Promise.withResolvers<void>();
  const housekeeping = new Housekeeping(store, environment, () => restarting.resolve());
  const rotation = new CaRotation({
    environment,
    scheduler,
    portalClock,
    ca: identity.ca,
    hasOwnCertificate: lanConfiguration.certificate !== null,
    anchor: () => leaf.shown.anchor,
    permitted: () => permittedNames(names, hubAddresses(lanConfiguration)),
    renewLeaf: () => leaf.renew(),
    onRotated: () =>
      void broker.ready.then(() => {
        void advertising.announce();
        housekeeping.copySoon();
      }),
  });
  leaf.whenAnchorChanges(() => void advertising.announce());

  const usedAssertions = before?.usedAssertions ?? new AssertionReplayCache();
  const service = openLanService(broker, {
    started,
    caFingerprint: () => place.fingerprint(),
    tokenRequested: (appliance, kind) => counters.tokenRequested(appliance, kind),
  });

  const hooks = parts.use(openHooks(configuration.notify, { timers, log }));
  const signed = (report: NoticeReport) => ({ ...report, hub: place.tellingHub() });
  const administration = openHubAdministration({
    broker,
    started,
    place,
    configFile: configuration.file,
    testMode: configuration.testMode === true,
    rotation,
    tryHooks: (report) => hooks.trial(signed(report)),
    store,
    keyRotation,
    copyStore: () => housekeeping.copyNow(),
    advertising,
    restart: () => restarting.resolve(),
    reloads,
  });

  const pages = openPages({
    ...{ service, administration, access, hubName: name, ready: broker.ready },
    ...{ log, clock, timers, random },
  });
  const lanServer = parts.use(
    await serveLan({
      service,
      pages,
      names: () => leaf.names,
      opened,
      ca: () => rotation.report(),
      leaf: leaf.shown.pem,
      usedAssertions,
      log,
      clock,
      timers,
    }),
  );
  parts.defer(() => pages.close());
  leaf.serve(lanServer);
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
    overdue: () => scheduler.overdue,
    names: () => leaf.names,
  });
  if (metrics !== null) parts.use(metrics);
  ports.metrics = metrics;
  const follower = parts.use(
    new LanFollower({
      address: () => place.address,
      steps: [
        () => pairings.addressChanged(),
        (moved) => moved && lan.current.address !== null && grants.networkChanged(),
        () => leaf.renew(),
        () => advertising.announce(),
      ],
      log,
    }),
  );

  await broker.resumePairings();
  parts.use(housekeeping).begin();
  lan.begin({ onChange: () => follower.changed(), onTopologyChange: () => void advertising.announce() });
  parts.use(
    watchClock({
      environment,
      synchronized: ntpWatch(),
      onSet() {
        grants.clockSet();
        pairings.clockSet();
        housekeeping.clockSet();
      },
      onSynchronized: () => portalClock.learnFromNtp(),
    }),
  );
  void advertising.announce();
  if (configuration.pairing.onStart && store.unwritable === null) await pairOnStart(appliances, grants, pairings, log);
  if (lan.current.address === null && lanConfiguration.address !== 'auto') {
    log.warn('lan_address_missing', { address: lanConfiguration.address });
  }
  notices.begin(
    () => administration.facts(),
    (report) => hooks.post(signed(report)),
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
  if (!access.wasFound) {
    log.info('page_never_opened', { what_to_do: '"latchkey setup-code" shows the setup code that opens it' });
  }

  const ended = new AbortController();
  const resources = parts.move();
  return {
    administration,
    controlSocket: configuration.controlSocket,
    restartWanted: restarting.promise,
    httpPort: ports.http,
    httpsPort: ports.https,
    get overdue() {
      return scheduler.overdue;
    },
    onEvent: (listener) => events.listen(listener),
    async handOver(next) {
      await drain(broker, timers, ended.signal);
      // While tokens are handed out still: one that hangs would keep appliances waiting for the next hub.
      await hooks[Symbol.asyncDispose]();
      // A hub that is to end meanwhile says goodbye.
      if (!ended.signal.aborted && isAnnouncedAlike(configuration, next)) advertising.skipGoodbye();
      return { started, broker: broker.memory(), usedAssertions, counters };
    },
    async [Symbol.asyncDispose]() {
      ended.abort();
      grants.stop();
      await resources.disposeAsync();
      log.info('hub_stopped');
    },
  };
}
