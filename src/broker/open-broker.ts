import type { Log } from '../core/log.ts';
import type { CredentialLocation } from '../core/portal.ts';
import type { HubEvent } from '../core/reports/hub-event.ts';
import { type SignInMemory, StoredSetupAccess } from './access/setup-access.ts';
import { Appliances } from './appliances/appliances.ts';
import {
  type Declared,
  declareAppliances,
  followRenamedPortals,
  warnOfScopes,
} from './appliances/configured-appliances.ts';
import { Registrations } from './appliances/registrations.ts';
import { Sessions } from './appliances/sessions.ts';
import type { Environment } from './environment.ts';
import { Grants } from './grants/grants.ts';
import { TokenIssuer } from './grants/token-issuer.ts';
import { DeviceFlows } from './pairings/device-flows.ts';
import { Pairings } from './pairings/pairings.ts';
import { Rounds } from './pairings/rounds.ts';
import { hearingAnswers } from './portal-answers.ts';
import type { BrokerStore, ConnectedPortals, PairingTimes } from './ports.ts';
import { HistoryRecorder } from './reports/history-recorder.ts';
import { Notices } from './reports/notices.ts';
import { PortalClock, PortalTimeProbe } from './time/portal-clock.ts';
import { Scheduler } from './time/scheduler.ts';

/** Everything that the broker needs of the world, so that tests can hold it. */
export interface BrokerPorts {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly portals: ConnectedPortals;
  readonly pairingTimes: PairingTimes;
  /** The appliances that the configuration declares. */
  readonly declared: Declared;
  /** Where the refreshes of an appliance's grant lie among those of all hubs: from 0 to 1, always the same (see `ScheduleInput`). */
  readonly jitterOffset: (appliance: string) => number;
  readonly before?: BrokerMemory | undefined;
}

/** What a broker hands to the one that takes its place in the same process; all else is in the store. */
export interface BrokerMemory {
  /** The ids of the appliances that the run before had left: see `LanService.knewBefore`. */
  readonly knownBefore: ReadonlySet<string>;
  /** Who has told the true time. */
  readonly portalClock: PortalClock;
  /** Milliseconds for which any appliance may still introduce itself; 0 if registration is closed. */
  readonly registrationOpenFor: number;
  /** How many have registered since it was opened. */
  readonly registrationAsked: number;
  /** One-time sign-in addresses, and who waits because of wrong setup codes. */
  readonly signIns: SignInMemory;
}

/** The appliances, their grants, and what looks after them. Disposing of it lets what was sent end, and writes it. */
export interface Broker extends AsyncDisposable {
  /** What its parts work with; the histories are told of each event too. */
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly appliances: Appliances;
  readonly scheduler: Scheduler;
  readonly portalClock: PortalClock;
  readonly portalTimeProbe: PortalTimeProbe;
  readonly histories: HistoryRecorder;
  readonly grants: Grants;
  readonly tokenIssuer: TokenIssuer;
  readonly pairings: Pairings;
  readonly rounds: Rounds;
  readonly deviceFlows: DeviceFlows;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly access: StoredSetupAccess;
  readonly notices: Notices;
  /** The ids of the appliances that the run before has left. */
  readonly knownBefore: ReadonlySet<string>;
  /** Where the hub's credentials at a portal are corrected. @param portal its name */
  credentialLocationAt(portal: string): CredentialLocation;
  /** Resolves when the pairings of the last run are gone on with. */
  readonly ready: Promise<void>;
  /** Goes on with the pairings that the last run left: to be called when the hub can be reached. */
  resumePairings(): Promise<void>;
  /** What the next one in the same process is to know. */
  memory(): BrokerMemory;
}

/**
 * Puts the broker together, on what the last run has left in the store. Nothing else does.
 * @throws Failure as the store; `config_invalid` for a declared appliance whose client_id is another's
 */
export async function openBroker(ports: BrokerPorts): Promise<Broker> {
  const { store, before } = ports;
  const portals = hearingAnswers(ports.portals, (portal) => grants.portalAnswered(portal));
  const { clock, timers, random, log, emit } = ports.environment;
  await using parts = new AsyncDisposableStack();
  const appliances = await Appliances.load(store, random, [...portals.names]);
  const nameOf = (id: string) => appliances.byId(id)?.name ?? id;
  const knownBefore = before?.knownBefore ?? new Set(appliances.list().map(({ id }) => id));
  await followRenamedPortals(appliances, portals, store, log);
  const moved = await declareAppliances(ports.declared, {
    appliances,
    identityOf: (portal) => portals.get(portal)?.identity,
    random,
    log,
  });

  const scheduler = parts.use(new Scheduler({ clock, timers }));
  const portalClock = new PortalClock({ clock, log }, before?.portalClock);
  const histories = parts.use(new HistoryRecorder({ clock, log }, store, scheduler, portalClock));
  store.takeHistoryFrom(histories);
  const environment: Environment = {
    ...ports.environment,
    emit(event: HubEvent) {
      histories.take(event);
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
      ...{ environment, store, grants, portalClock, nameOf },
      times: ports.pairingTimes,
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const rounds = new Rounds({
    ...{ environment, appliances, pairings },
    needsPairing: (appliance) => grants.needsPairing(appliance),
    accountOf: ({ id }) => grants.get(id)?.grant.account ?? null,
  });
  const notices = parts.use(await Notices.load({ environment, store, portalClock }));
  await grants.load();
  warnOfScopes(appliances, grants, log);
  const sessions = parts.use(await Sessions.load(store, scheduler, environment));
  const registrations = await Registrations.load({ environment, store, appliances, scheduler });
  if (before !== undefined) registrations.resume(before.registrationOpenFor, before.registrationAsked);
  const access = await StoredSetupAccess.load(store, environment, before?.signIns);
  reportDamage(store, nameOf, log);

  const ready = Promise.withResolvers<void>();
  const owned = parts.move();
  return {
    ...{ environment, store, knownBefore, ready: ready.promise },
    ...{ appliances, scheduler, portalClock, histories, grants, pairings, rounds, sessions, registrations, access },
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
        await pairings.forgetFailures(id);
      }
      ready.resolve();
    },
    memory: () => ({
      ...{ knownBefore, portalClock },
      registrationOpenFor: registrations.openFor,
      registrationAsked: registrations.asked,
      signIns: access.memory,
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
  for (const id of store.refusedSessions) {
    log.error('session_discarded', { appliance: nameOf(id) });
  }
  if (store.refusedInvites) log.error('invites_discarded');
}
