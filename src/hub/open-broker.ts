import { Appliances } from '../broker/appliances.ts';
import { Grants } from '../broker/grants.ts';
import { HandOuts } from '../broker/hand-outs.ts';
import { HistoryBook } from '../broker/history-book.ts';
import { Pairings } from '../broker/pairings.ts';
import { PortalClock } from '../broker/portal-clock.ts';
import { Registrations } from '../broker/registrations.ts';
import { Rounds } from '../broker/rounds.ts';
import { Scheduler } from '../broker/scheduler.ts';
import { Sessions } from '../broker/sessions.ts';
import { SetupAccessBook } from '../broker/setup-access.ts';
import type { Surroundings } from '../broker/surroundings.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import type { Configuration } from './configuration.ts';
import type { Continuity } from './continuity.ts';
import { declareAppliances, warnOfScopes } from './declared.ts';
import type { HubEvents } from './hub-events.ts';
import type { Identity } from './identity.ts';
import type { Portals } from './portals.ts';
import { followRenamedPortals } from './renamed-portals.ts';
import { spreadOf } from './spread.ts';
import { needsPairing } from './status.ts';

/** What the broker works with. */
interface BrokerContext {
  readonly configuration: Configuration;
  readonly surroundings: Surroundings;
  /** Where its surroundings tell what happens. */
  readonly events: HubEvents;
  readonly store: SqliteStore;
  readonly identity: Identity;
  readonly portals: Portals;
  /** What the hub before this one in the same process has left. */
  readonly before: Continuity | undefined;
}

/** The appliances, their grants, and who looks after them. */
export interface Broker {
  readonly appliances: Appliances;
  readonly scheduler: Scheduler;
  readonly portalClock: PortalClock;
  readonly histories: HistoryBook;
  readonly grants: Grants;
  readonly pairings: Pairings;
  readonly rounds: Rounds;
  readonly handOuts: HandOuts;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly access: SetupAccessBook;
  /** The ids of the appliances that the run before has left. */
  readonly knownBefore: ReadonlySet<string>;
  /** The ids of those that the configuration sends to another portal than before. */
  readonly moved: readonly string[];
}

/**
 * Takes up what the last run left; its pairings are the caller's to take up, when the hub can be reached.
 * @param parts what has to be disposed of is with these
 */
export async function openBroker(
  { configuration, surroundings, events, store, identity, portals, before }: BrokerContext,
  parts: AsyncDisposableStack,
): Promise<Broker> {
  const { clock, timers, random, log } = surroundings;
  const appliances = await Appliances.load(store, random, [...portals.names]);
  const knownBefore = before?.knownBefore ?? new Set(appliances.list().map(({ id }) => id));
  const { appliances: declarations, file } = configuration;
  await followRenamedPortals(appliances, portals, store, log);
  const moved = await declareAppliances(declarations, {
    file,
    appliances,
    identityOf: (portal) => portals.get(portal)?.identity,
    random,
    log,
  });
  const scheduler = parts.use(new Scheduler({ clock, timers }));
  const portalClock = new PortalClock(surroundings, before?.portalClock);
  const histories = parts.use(new HistoryBook(surroundings, store, scheduler, portalClock));
  store.takeHistoryFrom(histories);
  events.listen(histories.take);
  const grants = parts.use(
    new Grants(
      surroundings,
      store,
      scheduler,
      portalClock,
      (id) => {
        const appliance = appliances.byId(id);
        const portal = appliance && portals.get(appliance.portal);
        return appliance && portal && { name: appliance.name, ...portal };
      },
      (id) => spreadOf(identity.id, id),
    ),
  );
  const pairings = parts.use(
    new Pairings({
      surroundings,
      store,
      grants,
      portalClock,
      times: configuration.pairing,
      nameOf: (id) => appliances.byId(id)?.name ?? id,
      portalOf: (portal) => portals.get(portal),
    }),
  );
  const rounds = new Rounds({
    surroundings,
    appliances,
    pairings,
    needsPairing: (appliance) => needsPairing(appliance, grants.get(appliance.id)),
    accountOf: ({ id }) => grants.get(id)?.grant.account ?? null,
  });
  await grants.load();
  warnOfScopes(appliances, grants, log);
  for (const id of store.damagedGrants) log.error('grant is damaged', { appliance: appliances.byId(id)?.name ?? id });
  for (const id of store.damagedAppliances) {
    log.error('appliance is damaged', {
      appliance: appliances.byId(id)?.name ?? id,
      what_to_do: 'its entry was damaged or changed: remove it, add it again and pair it',
    });
  }
  const handOuts = new HandOuts(grants, surroundings);
  const sessions = parts.use(await Sessions.load(store, scheduler, surroundings));
  const registrations = await Registrations.load({ surroundings, store, appliances, scheduler });
  for (const id of store.refusedSessions) {
    log.error('session was changed, and is forgotten', { appliance: appliances.byId(id)?.name ?? id });
  }
  if (store.refusedInvites) log.error('invite was changed, and is forgotten');
  if (before !== undefined) registrations.resume(before.registrationOpenFor, before.registrationAsked);
  const access = await SetupAccessBook.load(store, surroundings, before?.signIns);
  return {
    appliances,
    scheduler,
    portalClock,
    histories,
    grants,
    pairings,
    rounds,
    handOuts,
    sessions,
    registrations,
    access,
    knownBefore,
    moved,
  };
}
