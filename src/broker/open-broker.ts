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

/** Everything that the broker needs of the world, so that tests can hold it. */
export interface BrokerOptions {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly portals: ConnectedPortals;
  readonly pairingTimes: PairingTimes;
  /** The appliances that the configuration declares. */
  readonly declarations: ApplianceDeclarations;
  /** Where the refreshes of an appliance's grant lie among those of all hubs: from 0 to 1, always the same (see `ScheduleInput`). */
  readonly jitterOffset: (appliance: string) => number;
  readonly predecessor?: BrokerHandover | undefined;
}

/** What a broker hands to the one that takes its place in the same process; all else is in the store. */
export interface BrokerHandover {
  /** The ids of the appliances that the run before had left: see `LanService.knewBefore`. */
  readonly previouslyKnown: ReadonlySet<string>;
  /** Who has told the true time. */
  readonly referenceClock: ReferenceClock;
  /** Milliseconds for which any appliance may still introduce itself; 0 if registration is closed. */
  readonly registrationOpenMs: number;
  /** How many have registered since it was opened. */
  readonly registeredCount: number;
  /** One-time sign-in addresses, and who waits because of wrong setup codes. */
  readonly signInState: SignInState;
}

/** The appliances, their grants, and what looks after them. Disposing of it lets what was sent end, and writes it. */
export interface Broker extends AsyncDisposable {
  /** What its parts work with; the histories are told of each event too. */
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
  /** The ids of the appliances that the run before has left. */
  readonly previouslyKnown: ReadonlySet<string>;
  /** Where the hub's credentials at a portal are corrected. @param portal its name */
  credentialLocationAt(portal: string): CredentialLocation;
  /** Resolves when the pairings of the last run are gone on with. */
  readonly ready: Promise<void>;
  /** Goes on with the pairings that the last run left: to be called when the hub can be reached. */
  resumePairings(): Promise<void>;
  /** What the next one in the same process is to know. */
  handoverState(): BrokerHandover;
}

/**
 * Puts the broker together, on what the last run has left in the store. Nothing else does.
 * @throws Failure as the store; `config_invalid` for a declared appliance whose client_id is another's
 */
export async function openBroker(ports: BrokerOptions): Promise<Broker> {
  const { store, predecessor: before } = ports;
  const portals = withAvailabilityListener(ports.portals, (portal) => grants.onPortalAvailable(portal));
  const { clock, timers, random, log, emit } = ports.environment;
  await using parts = new AsyncDisposableStack();
  const appliances = await Appliances.load(store, random, [...portals.names]);
  const nameOf = (id: string) => appliances.byId(id)?.name ?? id;
  const knownBefore = before?.previouslyKnown ?? new Set(appliances.list().map(({ id }) => id));
  await migrateRenamedPortals(appliances, portals, store, log);
  const moved = await reconcileAppliances(ports.declarations, {
    appliances,
    identityOf: (portal) => portals.get(portal)?.identity,
    random,
    log,
  });

  const scheduler = parts.use(new Scheduler({ clock, timers }));
  const portalClock = new ReferenceClock({ clock, log }, before?.referenceClock);
  const histories = parts.use(new HistoryRecorder({ clock, log }, store, scheduler, portalClock));
  store.setHistorySource(histories);
  const environment: Environment = {
    ...ports.environment,
    emit(event: ApplianceEvent) {
      histories.record(event);
      emit(event);
    },
  };
  const connectionOf = (id: string) => {
    const appliance = appliances.byId(id);
    const portal = appliance && portals.get(appliance.portal);
    return appliance && portal && { name: appliance.name, ...portal };
  };
  const grants = parts.use(new Grants(environment, store, scheduler, portalClock, connectionOf, ports.jitterOffset));
  const pairings = parts.use(
    new Pairings({
      ...{ environment, store, grants, referenceClock: portalClock, nameOf },
      times: ports.pairingTimes,
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const rounds = new PairingBatches({
    ...{ environment, appliances, pairings },
    needsPairing: (appliance) => grants.needsPairing(appliance),
    accountOf: ({ id }) => grants.get(id)?.grant.account ?? null,
  });
  const notices = parts.use(await Notices.load({ environment, store, portalClock }));
  await grants.load();
  warnAboutChangedScopes(appliances, grants, log);
  const sessions = parts.use(await Sessions.load(store, scheduler, environment));
  const registrations = await Registrations.load({ environment, store, appliances, scheduler });
  if (before !== undefined) registrations.resume(before.registrationOpenMs, before.registeredCount);
  const access = await StoredSetupAccess.load(store, environment, before?.signInState);
  reportDamage(store, nameOf, log);

  const ready = Promise.withResolvers<void>();
  const owned = parts.move();
  return {
    ...{ environment, store, previouslyKnown: knownBefore, ready: ready.promise },
    ...{
      appliances,
      scheduler,
      referenceClock: portalClock,
      historyRecorder: histories,
      grants,
      pairings,
      pairingBatches: rounds,
      sessions,
      registrations,
      access,
    },
    notices,
    credentialLocationAt: (portal) => portals.get(portal)?.credentialLocation ?? { portal },
    tokenIssuer: new TokenIssuer(grants, environment),
    deviceFlows: new DeviceFlows(pairings, environment),
    portalTimeProbe: new PortalTimeProbe(environment, portalClock, () =>
      portals.names.flatMap((name) => portals.get(name)?.portal ?? []),
    ),
    async resumePairings() {
      await pairings.load();
      rounds.resume();
      for (const id of moved) {
        await pairings.end(id, 'cancelled');
        await pairings.clearFailures(id);
      }
      ready.resolve();
    },
    handoverState: () => ({
      ...{ previouslyKnown: knownBefore, referenceClock: portalClock },
      registrationOpenMs: registrations.remainingOpenMs,
      registeredCount: registrations.registeredCount,
      signInState: access.signInState,
    }),
    async [Symbol.asyncDispose]() {
      // A refresh that was sent while an exchange is waited for would have to be waited for after that.
      grants.stop();
      await owned.disposeAsync();
    },
  };
}

/** Says what of the store can't be used. */
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
