import type { Log } from '../core/log.ts';
import type { CredentialLocation } from '../core/portal.ts';
import type { ApplianceEvent } from '../core/reports/appliance-event.ts';
import { type SignInState, StoredSetupAccess } from './access/setup-access.ts';
import { Appliances } from './appliances/appliances.ts';
import {
  type ApplianceDeclarations,
  migrateRenamedPortals,
  reconcileAppliances,
  warnAboutChangedScopes,
} from './appliances/declared-appliances.ts';
import { Registrations } from './appliances/registrations.ts';
import { Sessions } from './appliances/sessions.ts';
import type { Environment } from './environment.ts';
import { Grants } from './grants/grants.ts';
import { TokenIssuer } from './grants/token-issuer.ts';
import { DeviceFlows } from './pairings/device-flows.ts';
import { PairingBatches } from './pairings/pairing-batches.ts';
import { Pairings } from './pairings/pairings.ts';
import { withAvailabilityListener } from './portal-availability.ts';
import type { BrokerStore, ConnectedPortals, PairingTimes } from './ports.ts';
import { HistoryRecorder } from './reports/history-recorder.ts';
import { Notices } from './reports/notices.ts';
import { PortalTimeProbe, ReferenceClock } from './time/reference-clock.ts';
import { Scheduler } from './time/scheduler.ts';

/** What the broker depends on, passed in so that tests can replace it. */
export interface BrokerOptions {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly portals: ConnectedPortals;
  readonly pairingTimes: PairingTimes;
  /** The appliances that the configuration declares. */
  readonly declarations: ApplianceDeclarations;
  /**
   * Where an appliance's refreshes lie in the fleet's schedule: from 0 to 1, always the same for an appliance (see
   * `ScheduleInput`).
   */
  readonly jitterOffset: (appliance: string) => number;
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
  /** One-time addresses, and the throttle for wrong setup codes. */
  readonly signInState: SignInState;
}

/**
 * The appliances, their grants and everything that manages them. Disposal waits for requests under way and stores their
 * results.
 */
export interface Broker extends AsyncDisposable {
  /** The environment of all parts; its `emit` also records each event in the history. */
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly appliances: Appliances;
  readonly scheduler: Scheduler;
  readonly referenceClock: ReferenceClock;
  readonly portalTimeProbe: PortalTimeProbe;
  readonly historyRecorder: HistoryRecorder;
  readonly grants: Grants;
  readonly tokenIssuer: TokenIssuer;
  readonly pairings: Pairings;
  readonly pairingBatches: PairingBatches;
  readonly deviceFlows: DeviceFlows;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly access: StoredSetupAccess;
  readonly notices: Notices;
  /** The ids of the appliances that the store held when the process started. */
  readonly previouslyKnown: ReadonlySet<string>;
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
  const portals = withAvailabilityListener(ports.portals, (portal) => grants.onPortalAvailable(portal));
  const { clock, timers, random, log, emit } = ports.environment;
  await using parts = new AsyncDisposableStack();
  const appliances = await Appliances.load(store, random, [...portals.names]);
  const nameOf = (id: string) => appliances.byId(id)?.name ?? id;
  const previouslyKnown = predecessor?.previouslyKnown ?? new Set(appliances.list().map(({ id }) => id));
  await migrateRenamedPortals(appliances, portals, store, log);
  const reassignedIds = await reconcileAppliances(ports.declarations, {
    appliances,
    identityOf: (portal) => portals.get(portal)?.identity,
    random,
    log,
  });

  const scheduler = parts.use(new Scheduler({ clock, timers }));
  const referenceClock = new ReferenceClock({ clock, log }, predecessor?.referenceClock);
  const historyRecorder = parts.use(new HistoryRecorder({ clock, log }, store, scheduler, referenceClock));
  store.setHistorySource(historyRecorder);
  const environment: Environment = {
    ...ports.environment,
    emit(event: ApplianceEvent) {
      historyRecorder.record(event);
      emit(event);
    },
  };
  const connectionOf = (id: string) => {
    const appliance = appliances.byId(id);
    const portal = appliance && portals.get(appliance.portal);
    return appliance && portal && { name: appliance.name, ...portal };
  };
  const grants = parts.use(new Grants(environment, store, scheduler, referenceClock, connectionOf, ports.jitterOffset));
  const pairings = parts.use(
    new Pairings({
      ...{ environment, store, grants, referenceClock, nameOf },
      times: ports.pairingTimes,
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const pairingBatches = new PairingBatches({
    ...{ environment, appliances, pairings },
    needsPairing: (appliance) => grants.needsPairing(appliance),
    accountOf: ({ id }) => grants.get(id)?.grant.account ?? null,
  });
  const notices = parts.use(await Notices.load({ environment, store, referenceClock }));
  await grants.load();
  warnAboutChangedScopes(appliances, grants, log);
  const sessions = parts.use(await Sessions.load(store, scheduler, environment));
  const registrations = await Registrations.load({ environment, store, appliances, scheduler });
  if (predecessor !== undefined) registrations.resume(predecessor.registrationOpenMs, predecessor.registeredCount);
  const access = await StoredSetupAccess.load(store, environment, predecessor?.signInState);
  reportDamage(store, nameOf, log);

  const ready = Promise.withResolvers<void>();
  const owned = parts.move();
  return {
    ...{ environment, store, previouslyKnown, ready: ready.promise },
    ...{
      appliances,
      scheduler,
      referenceClock,
      historyRecorder,
      grants,
      pairings,
      pairingBatches,
      sessions,
      registrations,
      access,
    },
    notices,
    credentialLocationAt: (portal) => portals.get(portal)?.credentialLocation ?? { portal },
    tokenIssuer: new TokenIssuer(grants, environment),
    deviceFlows: new DeviceFlows(pairings, environment),
    portalTimeProbe: new PortalTimeProbe(environment, referenceClock, () =>
      portals.names.flatMap((name) => portals.get(name)?.portal ?? []),
    ),
    async resumePairings() {
      await pairings.load();
      pairingBatches.resume();
      for (const id of reassignedIds) {
        await pairings.end(id, 'cancelled');
        await pairings.clearFailures(id);
      }
      ready.resolve();
    },
    handoverState: () => ({
      ...{ previouslyKnown, referenceClock },
      registrationOpenMs: registrations.remainingOpenMs,
      registeredCount: registrations.registeredCount,
      signInState: access.signInState,
    }),
    async [Symbol.asyncDispose]() {
      // Stop refreshes first: one that started while disposal waits for a code exchange would have to be awaited too.
      grants.stop();
      await owned.disposeAsync();
    },
  };
}

/** Logs which parts of the store are damaged. */
function reportDamage(store: BrokerStore, nameOf: (id: string) => string, log: Log): void {
  for (const id of store.damagedGrants) log.error('grant_damaged', { appliance: nameOf(id) });
  for (const id of store.damagedAppliances) {
    log.error('appliance_damaged', {
      appliance: nameOf(id),
      what_to_do: 'its entry was damaged or changed: remove it, add it again and pair it',
    });
  }
  for (const id of store.rejectedSessions) {
    log.error('session_discarded', { appliance: nameOf(id) });
  }
  if (store.hasRejectedInvites) log.error('invites_discarded');
}
