import { isDeepStrictEqual } from 'node:util';
import { type Appliance, type ConnectionChoice, connectionIds } from '../../core/appliances/appliance.ts';
import { type Connection, damagedConnectionFailure, isOwnConnection } from '../../core/connections/connection.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import { checkTitle, deriveNamed, findNamed, getNamed, type Named, nameFromTitle } from '../../core/name.ts';
import type { Random } from '../../core/random.ts';
import { Secret } from '../../core/secret.ts';
import type { RegistryChange, Store } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';
import {
  assertConnectionFits,
  assertConnectionRenamable,
  connectionRemoval,
  ownConnectionExistsFailure,
  unusedConnections,
  withConnections,
} from '../connections/connection-changes.ts';
import { type Connections, connectionExistsFailure, connectionGoneFailure } from '../connections/connections.ts';

/** The most appliances on one hub. */
const MAX_APPLIANCES = 1000;
/** Bytes of an appliance's secret. */
const SECRET_BYTES = 32;

/** An appliance, with its secret that is shown only once. */
export interface Credentials {
  readonly appliance: Appliance;
  readonly secret: Secret;
}

/** What the installer chooses for an appliance that registered itself. */
export interface ApprovedChoice {
  /** The connection that it is to use; null for its own. */
  readonly connection: Connection | null;
  /** The name of the portal of its own connection; null for the one that it has. Beside `connection` it must be that one's. */
  readonly portal: string | null;
}

/** The registry of the hub's appliances. */
export class Appliances {
  readonly #store: Pick<Store, 'registry'>;
  readonly #random: Random;
  readonly #connections: Connections;
  readonly #byId = new Map<string, Appliance>();
  readonly #byClientId = new Map<string, Appliance>();
  /** By the connection's id. */
  readonly #byConnection = new Map<string, Set<string>>();

  private constructor(store: Pick<Store, 'registry'>, random: Random, connections: Connections) {
    this.#store = store;
    this.#random = random;
    this.#connections = connections;
  }

  static async load(store: Pick<Store, 'registry'>, random: Random, connections: Connections): Promise<Appliances> {
    const appliances = new Appliances(store, random, connections);
    for (const appliance of await appliances.#store.registry.appliances()) appliances.#addToIndex(appliance);
    return appliances;
  }

  /** All appliances, sorted by name. */
  list(): Appliance[] {
    return [...this.#byId.values()].sort(byName);
  }

  byId(id: string): Appliance | undefined {
    return this.#byId.get(id);
  }

  byClientId(clientId: string): Appliance | undefined {
    return this.#byClientId.get(clientId);
  }

  /** Whether an appliance exists and uses a connection. @param appliance its id @param connection its id */
  isUser(appliance: string, connection: string): boolean {
    return this.#byConnection.get(connection)?.has(appliance) === true;
  }

  /** The appliances that use a connection, sorted by name. @param connection its id */
  usersOf(connection: string): Appliance[] {
    return [...(this.#byConnection.get(connection) ?? [])].flatMap((id) => this.#byId.get(id) ?? []).sort(byName);
  }

  /** Whether a connection has only appliances that wait for approval, so that nobody may use it yet. @param connection its id */
  waitForApproval(connection: string): boolean {
    const users = this.usersOf(connection);
    return users.length > 0 && users.every(({ waiting }) => waiting !== null);
  }

  /** The appliance with this name; the name need not be valid. */
  find(name: string): Appliance | undefined {
    return [...this.#byId.values()].find((appliance) => appliance.name === name);
  }

  /** The appliance that a person named, see {@link findNamed}. */
  findTyped(typed: string): Appliance | undefined {
    return findNamed([...this.#byId.values()], typed);
  }

  /** The appliance that a person named. @throws Failure `appliance_unknown`, `name_invalid` */
  get(typed: string): Appliance {
    return getNamed('appliance', [...this.#byId.values()], typed);
  }

  /**
   * The title and the name for a new appliance that a person calls so. The name is taken if another one has the title.
   * @throws Failure `name_invalid`
   */
  nameFor(typed: string): Named {
    const title = checkTitle('appliance', typed);
    const isTaken = (name: string) => this.find(name) !== undefined || this.#connections.find(name) !== undefined;
    const holder = this.list().find((appliance) => appliance.title === title && appliance.waiting === null);
    return { title, name: holder?.name ?? (nameFromTitle(title) || deriveNamed('', 'appliance', isTaken).name) };
  }

  /** The connection because of which no own one of an appliance can have this title. */
  #connectionCalled(title: string): Connection | undefined {
    const found = this.#connections.find(this.#connections.nameFor(title));
    // Not that of an appliance that waits: any device may have registered with this title.
    return found === undefined || this.waitForApproval(found.id) ? undefined : found;
  }

  /**
   * @param typed what a person calls it
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `connection_unknown`,
   * `connection_exists`, `connection_mismatch`, or as {@link insert}
   */
  async add(typed: string, choice: ConnectionChoice): Promise<Credentials> {
    const named = this.nameFor(typed);
    const { name } = named;
    const secret = this.generateSecret();
    const id = this.#random.uuid();
    const added = await this.#connections.retryOnce(async () => {
      await this.releaseName(name);
      const titled = this.#connectionCalled(named.title);
      if (choice.connections.length === 0 && titled !== undefined && this.find(name) === undefined)
        throw ownConnectionExistsFailure(titled.name);
      const [connection, ...more] = this.chooseConnections(id, named, choice);
      const first: Appliance = {
        id,
        clientId: id,
        ...named,
        connection: connection.id,
        credentials: { kind: 'secret', hash: sha256(secret.reveal()) },
        origin: 'added',
        waiting: null,
        softwareId: null,
        ...(choice.ignoresScope && { ignoresScope: true }),
      };
      const appliance = withConnections(
        first,
        [connection, ...more].map((each) => each.id),
      );
      return (await this.insert(appliance, connection)) ? appliance : null;
    });
    if (added === null) throw applianceExistsFailure(name, this.find(name));
    return { appliance: added, secret };
  }

  /**
   * The connections for a new appliance: the chosen ones, or one of its own that is not stored yet.
   * @param id of the appliance
   * @throws Failure `connection_unknown`, `connection_mismatch`, `connection_exists`, `scope_invalid`, `portal_unknown`
   */
  chooseConnections(
    id: string,
    { name, title }: Named,
    { connections: chosen, scope, portal }: ConnectionChoice,
  ): [Connection, ...Connection[]] {
    const [wantedScope, wantedPortal] = [
      checkScope(scope),
      portal === null ? null : this.#connections.resolvePortal(portal),
    ];
    const [first, ...more] = distinct(chosen.map((connection) => this.#connections.get(connection)));
    if (first !== undefined) {
      for (const each of [first, ...more])
        assertConnectionFits(title, { scope: wantedScope, portal: wantedPortal }, each);
      return [first, ...more];
    }
    const holder = this.#connections.find(name);
    if (holder !== undefined && this.find(name) === undefined) throw ownConnectionExistsFailure(name);
    return [
      { id, name, title, scope: wantedScope, portal: this.#connections.resolvePortal(portal), origin: 'implicit' },
    ];
  }

  /**
   * Stores a new appliance, and its connection if that is new.
   * @param invite the hash of its invite, which is consumed in the same transaction
   * @returns false if its name or client_id is taken, or the invite is gone
   * @throws Failure `not_allowed` if there are too many appliances, `connection_unknown` if its shared connection was
   * removed meanwhile, or as {@link Store}
   */
  async insert(appliance: Appliance, connection: Connection, invite?: string): Promise<boolean> {
    if (this.#byId.size >= MAX_APPLIANCES) {
      throw new Failure('not_allowed', `the hub has the maximum of ${MAX_APPLIANCES} appliances: remove unused ones`);
    }
    return this.save(() => {
      const isOwn = connection.id === appliance.id;
      // A shared one that was removed meanwhile must not come back.
      if (!isOwn && this.#connections.allOfAppliance(appliance).length < connectionIds(appliance).length)
        throw connectionGoneFailure(appliance.name);
      return {
        addedConnections: isOwn ? [connection] : [],
        addedAppliances: [appliance],
        ...(invite === undefined ? {} : { usedInvite: invite }),
      };
    });
  }

  /**
   * Frees a name that an installer wants for another appliance or connection. An appliance that waits for approval gives
   * up its name and gets another one, because any device may have registered with that name.
   * @throws Failure as {@link update}
   */
  async releaseName(name: string): Promise<void> {
    const holder = this.find(name);
    if (holder === undefined || holder.waiting === null) return;
    const isTaken = (other: string) => this.find(other) !== undefined || this.#connections.find(other) !== undefined;
    await this.#change(holder.id, (current) => {
      if (current.waiting === null || current.name !== name) return {};
      const named = deriveNamed(current.title, 'appliance', isTaken);
      return {
        updatedAppliances: [{ ...current, ...named }],
        updatedConnections: this.#onlyUsedBy(current).map((own) => ({ ...own, ...named })),
      };
    });
  }

  /**
   * Changes the title of an appliance, and that of its own connection. Its name stays.
   * @param typed the new title
   * @throws Failure `name_invalid`, `appliance_declared`, `appliance_unknown`, `appliance_exists` or `connection_exists` if
   * one with this title could not be added, `not_allowed` if its row was damaged, or as {@link Store}
   */
  async rename(appliance: Appliance, typed: string): Promise<Appliance> {
    const { id } = appliance;
    const { title } = this.nameFor(typed);
    assertRenamable(appliance);
    const called = this.findTyped(title);
    if (called !== undefined && called.id !== id) await this.releaseName(called.name);
    return this.#change(id, (current) => {
      assertRenamable(current);
      const holder = this.find(this.nameFor(title).name);
      if (holder !== undefined && holder.id !== id) throw applianceExistsFailure(holder.name, holder);
      const own = this.#onlyUsedBy(current).filter((connection) => isOwnConnection(connection, [current]));
      const other = this.#connectionCalled(title);
      if (own.length > 0 && other !== undefined && !own.includes(other))
        throw connectionExistsFailure(other.name, other);
      return {
        updatedAppliances: current.title === title ? [] : [{ ...current, title }],
        updatedConnections: own.filter((one) => one.title !== title).map((one) => ({ ...one, title })),
      };
    });
  }

  /**
   * Changes the title of a connection that is not the own one of an appliance. It then stays as if an installer had added it.
   * @param typed the new title
   * @throws Failure `name_invalid`, `connection_declared`, `connection_unknown`, `connection_exists` if one with this title
   * could not be added, `not_allowed` if it is an own one or was damaged, or as {@link Store}
   */
  async renameConnection(connection: Connection, typed: string): Promise<Connection> {
    const { id } = connection;
    const title = checkTitle('connection', typed);
    const derive = (): RegistryChange => {
      const current = this.#connections.byId(id);
      if (current === undefined) throw connectionChangedFailure();
      assertConnectionRenamable(current, this.usersOf(id));
      const holder = this.#connections.find(this.#connections.nameFor(title));
      if (holder !== undefined && holder.id !== id) throw connectionExistsFailure(holder.name, holder);
      return current.title === title ? {} : { updatedConnections: [{ ...current, title, origin: 'added' }] };
    };
    assertConnectionRenamable(connection, this.usersOf(id));
    const name = this.#connections.nameFor(title);
    if (name !== connection.name) await this.releaseName(name);
    const renamed = await this.#connections.retryOnce(async () =>
      (await this.save(derive)) ? (this.#connections.byId(id) ?? null) : null,
    );
    if (renamed === null) throw connectionChangedFailure();
    return renamed;
  }

  /** Generates a secret for an appliance. */
  generateSecret(): Secret {
    return new Secret(this.#random.token(SECRET_BYTES));
  }

  /**
   * @param replaceKeys whether the secret may replace the appliance's own keys
   * @throws Failure `appliance_has_keys` if it may not, `appliance_declared`, `appliance_unknown`, `not_allowed` if its
   * row was damaged, or as {@link Store}
   */
  async rotateSecret({ id }: Appliance, replaceKeys = false): Promise<Credentials> {
    const secret = this.generateSecret();
    const hash = sha256(secret.reveal());
    const appliance = await this.update(id, (current) => {
      assertNotDeclared(current, 'change its secret there');
      assertNotDamaged(current);
      if (current.credentials.kind === 'keys' && !replaceKeys) {
        const { name } = current;
        throw new Failure(
          'appliance_has_keys',
          `${name} authenticates with a key, and a secret would replace the key: add --yes to confirm`,
        );
      }
      return { ...current, credentials: { kind: 'secret', hash } };
    });
    return { appliance, secret };
  }

  /**
   * Approves an appliance that registered itself.
   * @throws Failure `not_allowed` if it is not waiting for approval, `appliance_unknown`, `connection_mismatch`, or as
   * {@link Store}
   */
  approve(
    { id }: Appliance,
    { connection, portal }: ApprovedChoice = { connection: null, portal: null },
  ): Promise<Appliance> {
    return this.#change(id, (current) => {
      assertNotDamaged(current);
      if (current.waiting !== null) {
        const approved = { ...current, waiting: null };
        const own = this.#connections.ofAppliance(current);
        if (connection === null)
          return {
            updatedAppliances: [approved],
            ...(portal !== null && { updatedConnections: [{ ...own, portal }] }),
          };
        // It could not ask for a portal, so it may get one at any.
        assertConnectionFits(current.title, { scope: own.scope, portal }, connection);
        return {
          updatedAppliances: [withConnections(approved, [connection.id])],
          ...unusedConnections(this.#onlyUsedBy(current, [connection]), () => false),
        };
      }
      const reason =
        current.credentials.kind === 'none'
          ? `it has no credentials, so its token can't be requested: "latchkey appliance list" says what to do`
          : 'it may already request tokens; nothing to do';
      throw new Failure('not_allowed', `${current.name} is not waiting for approval: ${reason}`);
    });
  }

  /**
   * Lets an appliance use other connections.
   * @param chosen at least one
   * @param hasGrant whether a connection that was made for appliances, and that nothing uses any more, has a grant, so that
   * it stays; otherwise it is removed. Called after the changes that were requested before
   * @throws Failure `appliance_declared`, `appliance_unknown`, `connection_unknown` if a chosen one was removed meanwhile,
   * `not_allowed` if one, or the appliance's row, was damaged, or as {@link Store}
   */
  move(
    { id }: Appliance,
    chosen: readonly Connection[],
    hasGrant: (connection: Connection) => Promise<boolean>,
  ): Promise<Appliance> {
    return this.#change(id, async (current) => {
      assertNotDeclared(current, 'name its connection there');
      assertNotDamaged(current);
      const existing = distinct(chosen.map((one) => this.#connections.byId(one.id) ?? this.#connections.get(one.name)));
      for (const connection of existing) if (connection.damaged) throw damagedConnectionFailure(connection);
      const unused = this.#onlyUsedBy(current, existing);
      const kept = new Set<Connection>();
      for (const connection of unused) if (await hasGrant(connection)) kept.add(connection);
      const ids = existing.map((connection) => connection.id);
      return {
        updatedAppliances: [withConnections(current, ids)],
        ...unusedConnections(unused, (connection) => kept.has(connection)),
      };
    });
  }

  /** The connections that were made for appliances, and that nothing but this one uses. @param others without these */
  #onlyUsedBy(appliance: Appliance, others: readonly Connection[] = []): readonly Connection[] {
    return this.#connections
      .allOfAppliance(appliance)
      .filter((one) => one.origin === 'implicit' && this.usersOf(one.id).length === 1 && !others.includes(one));
  }

  /**
   * Removes an appliance, and its connection if that was its own, see {@link isOwnConnection}.
   * @returns the connection that was removed with it; null if there is none
   * @throws Failure `appliance_declared`, or as {@link Store}
   */
  async remove(appliance: Appliance): Promise<Connection | null> {
    assertNotDeclared(appliance);
    let own: Connection | null = null;
    const derive = () => {
      const current = this.#byId.get(appliance.id) ?? appliance;
      const unused = this.#onlyUsedBy(current);
      own = unused.find((connection) => isOwnConnection(connection, [current])) ?? null;
      return { removedAppliances: [appliance.id], ...unusedConnections(unused, (connection) => connection !== own) };
    };
    await this.#connections.retryOnce(async () => (await this.save(derive)) || null);
    return own;
  }

  /**
   * Removes a connection. Each appliance that uses it gets a connection of its own instead. The connection of an appliance
   * with the same name stays as its own one, and the caller must delete the grant.
   * @returns whether the connection no longer exists
   * @throws Failure `connection_declared`, `connection_unknown` if it was changed meanwhile, `connection_exists` if
   * another connection has the name of one of the appliances, or as {@link Store}
   */
  async removeConnection(connection: Connection): Promise<boolean> {
    let removedIds: readonly string[] = [];
    const derive = () => {
      const current = this.#connections.byId(connection.id) ?? connection;
      const change = connectionRemoval(current, this.usersOf(current.id), this.#connections, this.#random);
      removedIds = change.removedConnections;
      return change;
    };
    const isSaved = await this.#connections.retryOnce(async () => (await this.save(derive)) || null);
    if (isSaved !== null) return removedIds.length > 0;
    throw connectionChangedFailure();
  }

  /**
   * Changes an appliance, after the changes that were requested before.
   * @throws Failure `appliance_unknown` if it was removed, or its new name or client_id is taken; whatever `change`
   * throws; or as {@link Store}
   */
  update(id: string, change: (current: Appliance) => Appliance): Promise<Appliance> {
    return this.#change(id, (current) => ({ updatedAppliances: [change(current)] }));
  }

  async #change(
    id: string,
    change: (current: Appliance) => RegistryChange | Promise<RegistryChange>,
  ): Promise<Appliance> {
    const derive = () => {
      const current = this.#byId.get(id);
      if (current === undefined) throw removedMeanwhileFailure();
      return change(current);
    };
    const changed = await this.#connections.retryOnce(async () =>
      (await this.save(derive)) ? (this.#byId.get(id) ?? null) : null,
    );
    if (changed === null) throw removedMeanwhileFailure();
    return changed;
  }

  /**
   * Writes changes of appliances and connections, and then applies them.
   * @param derive as in {@link Connections.save}
   * @returns false if they do not apply, see {@link RegistryStore.save}
   * @throws Failure as {@link Store}, and whatever `derive` throws
   */
  save(derive: Parameters<Connections['save']>[0]): Promise<boolean> {
    return this.#connections.save(derive, (change) => this.#applyInMemory(change));
  }

  /** Applies changes in memory while the store can't be written: see {@link Connections.applyInMemory}. */
  applyInMemory(change: RegistryChange): void {
    this.#connections.applyInMemory(change);
    this.#applyInMemory(change);
  }

  /**
   * Takes over what the store has.
   * @param stored all stored appliances
   * @returns the ids of the appliances that no longer exist
   */
  replace(stored: readonly Appliance[]): string[] {
    const found = new Set(stored.map(({ id }) => id));
    const removed = [...this.#byId.keys()].filter((id) => !found.has(id));
    const changed = stored.filter((appliance) => !isDeepStrictEqual(this.#byId.get(appliance.id), appliance));
    this.#applyInMemory({ updatedAppliances: changed, removedAppliances: removed });
    return removed;
  }

  #applyInMemory({ addedAppliances = [], updatedAppliances = [], removedAppliances = [] }: RegistryChange): void {
    for (const appliance of [...addedAppliances, ...updatedAppliances]) {
      this.#removeFromIndex(appliance.id);
      this.#addToIndex(appliance);
    }
    for (const id of removedAppliances) this.#removeFromIndex(id);
  }

  #addToIndex(appliance: Appliance): void {
    this.#byId.set(appliance.id, appliance);
    this.#byClientId.set(appliance.clientId, appliance);
    for (const connection of connectionIds(appliance)) {
      const users = this.#byConnection.get(connection) ?? new Set();
      this.#byConnection.set(connection, users.add(appliance.id));
    }
  }

  #removeFromIndex(id: string): void {
    const existing = this.#byId.get(id);
    if (existing === undefined) return;
    this.#byId.delete(id);
    this.#byClientId.delete(existing.clientId);
    for (const connection of connectionIds(existing)) {
      const users = this.#byConnection.get(connection);
      users?.delete(id);
      if (users?.size === 0) this.#byConnection.delete(connection);
    }
  }
}

function distinct<Item>(items: readonly Item[]): Item[] {
  return [...new Set(items)];
}

function removedMeanwhileFailure(): Failure {
  return new Failure(
    'appliance_unknown',
    'the appliance was removed meanwhile: "latchkey appliance list" lists the existing ones',
  );
}

function connectionChangedFailure(): Failure {
  return new Failure('connection_unknown', 'the connection or its appliances were changed meanwhile: try again');
}

function byName(a: Appliance, b: Appliance): number {
  return a.name < b.name ? -1 : 1;
}

/** The failure for a name that is taken. @param holder the appliance with that name, if known */
export function applianceExistsFailure(name: string, holder?: Appliance): Failure {
  if (holder?.origin === 'declared') {
    return new Failure(
      'appliance_exists',
      `${name} already exists: it is declared in the hub's configuration, in the table [appliances.${name}]; pair it with "latchkey pair ${name}", or choose another name`,
    );
  }
  return new Failure(
    'appliance_exists',
    `there is an appliance ${name} already: choose another name, or remove it first`,
  );
}

/** Whether its row in the store was damaged or changed, so that no client can authenticate as this appliance. */
export function hasUnreadableCredentials({ credentials }: Appliance): boolean {
  return credentials.kind === 'none' && credentials.damaged === true;
}

/**
 * If another program changed the row, it may have given it another appliance's name: a new secret could then open
 * another appliance's grant.
 */
function assertNotDamaged(appliance: Appliance): void {
  if (!hasUnreadableCredentials(appliance)) return;
  const { name } = appliance;
  throw new Failure(
    'not_allowed',
    `the entry of ${name} in the store was damaged, or changed by something other than the hub, so it can't get a new secret: remove it ("latchkey appliance remove ${name}"), add it again and pair it`,
  );
}

/** @throws Failure `appliance_declared` if only the configuration can remove or change the appliance */
export function assertNotDeclared({ origin, name }: Appliance, instead = 'remove it there'): void {
  if (origin !== 'declared') return;
  throw new Failure(
    'appliance_declared',
    `${name} is declared in the hub's configuration, in the table [appliances.${name}]: ${instead}, and restart the hub`,
  );
}

/** @throws Failure `appliance_declared`, or `not_allowed` if its row was damaged */
function assertRenamable(appliance: Appliance): void {
  assertNotDeclared(appliance, 'change the name of that table (it is then another appliance, which must be paired)');
  assertNotDamaged(appliance);
}
