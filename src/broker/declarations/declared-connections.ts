import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import type { Appliance, DeclaredAppliance } from '../../core/appliances/appliance.ts';
import { type Connection, type DeclaredConnection, isOwnConnection } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import { hasScopeChanged } from '../../core/grants/grant.ts';
import type { Log } from '../../core/log.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { type PortalIdentity, samePortal } from '../../core/portals/identity.ts';
import type { Random } from '../../core/random.ts';
import { OWN_DECLARATIONS_SETTING } from '../../core/site.ts';
import type { RegistryChange, Store } from '../../core/store.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { Connections } from '../connections/connections.ts';
import type { Grants } from '../grants/grants.ts';
import type { BrokerStore, ConnectedPortals } from '../ports.ts';

/** What the configuration declares. */
export interface Declarations {
  readonly connections: readonly DeclaredConnection[];
  readonly appliances: readonly DeclaredAppliance[];
  /** The path of the configuration file, for messages. */
  readonly file: string;
}

/** What reconciling needs. */
export interface ReconcileContext {
  readonly connections: Connections;
  readonly appliances: Appliances;
  readonly own: Pick<OwnDeclarations, 'includes'>;
  /** The identity of a configured portal; undefined if the configuration has none of this name. */
  identityOf(portal: string): PortalIdentity | undefined;
  readonly random: Pick<Random, 'uuid'>;
  readonly log: Log;
}

/**
 * Declares a connection: a stored one with its name is adopted with its grant, unless its row was damaged or changed. If
 * it moves to another portal, the grant is kept but suspended until it moves back
 * (docs/decisions/portals-of-grants.md).
 * @param newId its id if it is not stored yet
 * @returns its id, and whether it moved to another portal; null if the stored one is damaged
 */
export async function declareConnection(
  { name, scope, portal }: DeclaredConnection,
  newId: string,
  context: ReconcileContext,
): Promise<{ readonly id: string; readonly hasMoved: boolean } | null> {
  const { connections, log } = context;
  const existing = connections.find(name);
  // Its name may have been swapped with another one's.
  if (existing?.damaged) return null;
  const id = existing?.id ?? newId;
  const title = existing?.title ?? name;
  const declared: Connection = {
    id,
    name,
    title,
    scope,
    portal: connections.resolvePortal(portal),
    origin: 'declared',
  };
  if (existing === undefined) {
    await writeIfPossible(`the connection ${name}`, { addedConnections: [declared] }, context);
    return { id, hasMoved: false };
  }
  // If the old portal is no longer configured, only the grant shows whether the new one is the same portal renamed.
  const [before, after] = [context.identityOf(existing.portal), context.identityOf(declared.portal)];
  const hasMoved = before !== undefined && after !== undefined && !samePortal(before, after);
  if (!isDeepStrictEqual(existing, declared)) {
    await writeIfPossible(`the connection ${name}`, { updatedConnections: [declared] }, context);
  }
  if (hasMoved) log.warn('connection_moved', { connection: name, before: existing.portal, portal: declared.portal });
  return { id, hasMoved };
}

/**
 * Ends what the configuration no longer declares, after the declared appliances were reconciled. A connection that has a
 * grant or is in use is kept.
 * @param hasGrant whether the store has a grant of a connection, even a damaged one
 */
export async function releaseUndeclaredConnections(
  { connections: tables, appliances: declared }: Declarations,
  hasGrant: (connection: string) => Promise<boolean>,
  context: ReconcileContext,
): Promise<void> {
  const { connections, appliances, own, log } = context;
  const names = new Set([
    ...tables.map(({ name }) => name),
    ...declared.flatMap((one) => (one.connections.length === 0 ? [one.name] : [])),
  ]);
  for (const connection of connections.list()) {
    const { id, name, origin } = connection;
    const users = appliances.usersOf(id);
    const isUndeclared = origin === 'declared' && !names.has(name) && own.includes(`connections/${name}`);
    if (!isUndeclared && !(origin === 'implicit' && users.length === 0)) continue;
    const isUnused = users.length === 0 && !(await hasGrant(id));
    await writeIfPossible(
      `the connection ${name}`,
      isUnused ? { removedConnections: [id] } : { updatedConnections: [undeclared(connection, users)] },
      context,
    );
    if (isUndeclared) log.info('connection_undeclared', { connection: name, kept: !isUnused });
  }
}

/** A connection that is no longer declared, and stays. */
function undeclared(connection: Connection, users: readonly Appliance[]): Connection {
  const [user] = users;
  return user !== undefined && isOwnConnection(connection, users)
    ? { ...connection, title: user.title, origin: 'implicit' }
    : { ...connection, origin: 'added' };
}

/** Logs the declared connections whose scope was changed since they were paired. Their grants remain in use. */
export function warnAboutChangedScopes(connections: Connections, grants: Grants, log: Log): void {
  for (const connection of connections.list()) {
    if (!hasScopeChanged(connection, grants.get(connection.id)?.grant)) continue;
    const { name, scope } = connection;
    log.warn('scope_changed', { connection: name, scope, what_to_do: `latchkey pair ${name}` });
  }
}

/**
 * Moves the connections of portals that were renamed in the configuration; their grants identify the portal. A connection
 * that was never paired stays with the old name until the configuration has it again. Open pairings move along.
 */
export async function migrateRenamedPortals(
  connections: Connections,
  portals: Pick<ConnectedPortals, 'nameOf'>,
  store: Pick<Store, 'grants' | 'pairings'>,
  log: Log,
): Promise<void> {
  let storedPairings: readonly Pairing[] | undefined;
  for (const connection of connections.list()) {
    if (connections.hasPortal(connection.portal) || connection.damaged) continue;
    const issuer = (await store.grants.get(connection.id))?.grant.issuer;
    const portal = issuer && portals.nameOf(issuer);
    if (portal === undefined) continue;
    const change = { updatedConnections: [{ ...connection, portal }] };
    storedPairings ??= await store.pairings.all();
    const open = storedPairings.filter(
      (pairing) => pairing.connection === connection.id && pairing.step.kind !== 'ended',
    );
    // Pairings first: if the hub is interrupted in between, the next start repeats both.
    await movePairings(open, connection.portal, portal, store)
      .then(() => connections.save(() => change))
      .catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
        connections.applyInMemory(change);
      });
    log.info('portal_renamed', { connection: connection.name, before: connection.portal, portal });
  }
}

/** @throws Failure as {@link Store} */
async function movePairings(
  pairings: readonly Pairing[],
  before: string,
  portal: string,
  store: Pick<Store, 'pairings'>,
): Promise<void> {
  for (const pairing of pairings) if (pairing.portal === before) await store.pairings.save({ ...pairing, portal });
}

/**
 * Writes a change; while the store can't be written, it is applied only in memory.
 * @param what names what is declared, for messages
 * @throws Failure `unexpected` if the change does not apply
 */
export async function writeIfPossible(
  what: string,
  change: RegistryChange,
  { appliances, log }: Pick<ReconcileContext, 'appliances' | 'log'>,
): Promise<void> {
  try {
    if (await appliances.save(() => change)) return;
    throw new Failure(
      'unexpected',
      `${what} can't be declared: the store already has another one with its name or client_id`,
    );
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
    log.warn('declaration_not_stored', { what });
    appliances.applyInMemory(change);
  }
}

/** What a configuration declares. */
interface DeclaredNames {
  readonly connections: readonly Pick<DeclaredConnection, 'name'>[];
  readonly appliances: readonly Pick<DeclaredAppliance, 'name' | 'connections'>[];
}

/** An appliance or a connection that a configuration declares. */
type DeclarationKey = `appliances/${string}` | `connections/${string}`;

const storedKeys = v.pipe(v.string(), v.parseJson(), v.array(v.string()));

/** What a hub may end when its configuration no longer declares it: a hub that is alone all, one of a site {@link OwnDeclarations}. */
export const ALL_DECLARATIONS: Pick<OwnDeclarations, 'includes' | 'save'> = {
  includes: () => true,
  save: async () => undefined,
};

/**
 * What the configuration of this hub declared at its last start. A hub of a site removes only such appliances and
 * connections when its configuration no longer declares them, because the configuration of another hub may declare
 * more.
 */
export class OwnDeclarations {
  readonly #store: Pick<BrokerStore, 'settings'>;
  readonly #before: ReadonlySet<string>;

  private constructor(store: Pick<BrokerStore, 'settings'>, before: ReadonlySet<string>) {
    this.#store = store;
    this.#before = before;
  }

  /** @throws Failure as {@link Store} */
  static async load(store: Pick<BrokerStore, 'settings'>): Promise<OwnDeclarations> {
    const stored = v.safeParse(storedKeys, await store.settings.get(OWN_DECLARATIONS_SETTING));
    return new OwnDeclarations(store, new Set(stored.success ? stored.output : []));
  }

  /** Whether this hub may end what is no longer declared. */
  includes(key: DeclarationKey): boolean {
    return this.#before.has(key);
  }

  /** Saves what is declared now. If the store can't be written, nothing was ended either. */
  async save({ connections, appliances }: DeclaredNames): Promise<void> {
    const before = this.#before;
    // An appliance that is declared without a connection declares one of its name.
    const own = appliances.filter((appliance) => appliance.connections.length === 0);
    const keys = [
      ...[...connections, ...own].map(({ name }): DeclarationKey => `connections/${name}`),
      ...appliances.map(({ name }): DeclarationKey => `appliances/${name}`),
    ];
    if (keys.length === before.size && keys.every((key) => before.has(key))) return;
    await this.#store.settings.save({ [OWN_DECLARATIONS_SETTING]: JSON.stringify(keys) }).catch((error: unknown) => {
      if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
    });
  }
}
