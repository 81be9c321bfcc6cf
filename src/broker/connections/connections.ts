import { type Appliance, connectionIds } from '../../core/appliances/appliance.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import { uncapitalize } from '../../core/letter-case.ts';
import { checkTitle, deriveNamed, findNamed, getNamed, nameFromTitle } from '../../core/name.ts';
import { NO_PORTAL } from '../../core/portals/portal-status.ts';
import type { Random } from '../../core/random.ts';
import type { RegistryChange } from '../../core/store.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { BrokerStore } from '../ports.ts';

/** The most connections on one hub. */
const MAX_CONNECTIONS = 1000;

type ConnectionStore = Pick<BrokerStore, 'registry' | 'catchUp'>;

/** The hub's connections, by id and name. */
export class Connections {
  readonly #store: ConnectionStore;
  readonly #random: Pick<Random, 'uuid'>;
  /** The names of the configured portals, the default one first. */
  readonly portals: readonly string[];
  /** Orders the changes of connections and appliances, and what is read of them. */
  readonly #queue = new SerialQueue();
  readonly #byId = new Map<string, Connection>();
  /** Changes that are only in memory, because the store could not be written. */
  readonly #unwritten: RegistryChange[] = [];

  private constructor(store: ConnectionStore, random: Pick<Random, 'uuid'>, portals: readonly string[]) {
    this.#store = store;
    this.#random = random;
    this.portals = portals;
  }

  /** @param portals the names of the configured portals, the default one first */
  static async load(
    store: ConnectionStore,
    random: Pick<Random, 'uuid'>,
    portals: readonly string[],
  ): Promise<Connections> {
    const connections = new Connections(store, random, portals);
    for (const connection of await store.registry.connections()) connections.#byId.set(connection.id, connection);
    return connections;
  }

  /** All connections, sorted by name. */
  list(): Connection[] {
    return [...this.#byId.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  byId(id: string): Connection | undefined {
    return this.#byId.get(id);
  }

  /** The connection with this name; the name need not be valid. */
  find(name: string): Connection | undefined {
    return [...this.#byId.values()].find((connection) => connection.name === name);
  }

  /** The connection that a person named, see {@link findNamed}. */
  findTyped(typed: string): Connection | undefined {
    return findNamed([...this.#byId.values()], typed);
  }

  /** The connection that a person named. @throws Failure `connection_unknown`, `name_invalid` */
  get(typed: string): Connection {
    return getNamed('connection', [...this.#byId.values()], typed);
  }

  /** The connection that an appliance uses, or the first one. */
  ofAppliance(appliance: Pick<Appliance, 'connection' | 'more' | 'name'>): Connection {
    const [found] = this.allOfAppliance(appliance);
    if (found !== undefined) return found;
    throw connectionGoneFailure(appliance.name);
  }

  /** The connections that an appliance uses: one, or several. */
  allOfAppliance(appliance: Pick<Appliance, 'connection' | 'more'>): readonly Connection[] {
    return connectionIds(appliance)
      .map((id) => this.#byId.get(id))
      .filter((found) => found !== undefined);
  }

  /**
   * The name of a configured portal.
   * @param portal null for the default one
   * @throws Failure `portal_unknown`
   */
  resolvePortal(portal: string | null): string {
    const [first] = this.portals;
    const chosen = portal ?? first;
    if (chosen !== undefined && this.hasPortal(chosen)) return chosen;
    const found =
      this.portals.length === 0
        ? `${uncapitalize(NO_PORTAL.message)}: ${uncapitalize(NO_PORTAL.advice)}`
        : `configured portals: ${this.portals.join(', ')}`;
    throw new Failure('portal_unknown', chosen === undefined ? found : `there is no portal ${chosen}; ${found}`);
  }

  hasPortal(portal: string): boolean {
    return this.portals.includes(portal);
  }

  /**
   * Adds a connection that appliances can share.
   * @param portal null for the default one
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `connection_exists`, `not_allowed` if there are
   * too many, or as {@link Store}
   */
  async add(typed: string, scope: string | null, portal: string | null): Promise<Connection> {
    const connection = this.create(typed, scope, portal);
    if (this.#byId.size >= MAX_CONNECTIONS) {
      throw new Failure('not_allowed', `the hub has the maximum of ${MAX_CONNECTIONS} connections: remove unused ones`);
    }
    const added = await this.retryOnce(async () =>
      (await this.save(() => ({ addedConnections: [connection] }))) ? connection : null,
    );
    if (added === null) throw connectionExistsFailure(connection.name, this.find(connection.name));
    return added;
  }

  /**
   * A new connection, which is not stored yet.
   * @param typed what a person calls it
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`
   */
  create(typed: string, scope: string | null, portal: string | null): Connection {
    const title = checkTitle('connection', typed);
    return {
      id: this.#random.uuid(),
      name: this.nameFor(title),
      title,
      portal: this.resolvePortal(portal),
      scope: checkScope(scope),
      origin: 'added',
    };
  }

  /** The name for a new connection with this title; it is taken if another one has the title. */
  nameFor(title: string): string {
    const holder = this.list().find((connection) => connection.title === title);
    const isTaken = (name: string) => this.find(name) !== undefined;
    return holder?.name ?? (nameFromTitle(title) || deriveNamed('', 'connection', isTaken).name);
  }

  /**
   * Writes changes, and then applies those of connections.
   * @param derive what is to be changed, from the records as they are then: no news are applied before it is written, and
   * the store compares with what this hub has read last
   * @param onApplied applies the others
   * @returns false if they don't apply, see {@link RegistryStore.save}
   * @throws Failure as {@link Store}, and whatever `derive` throws
   */
  save(
    derive: () => RegistryChange | Promise<RegistryChange>,
    onApplied: (change: RegistryChange) => void = () => undefined,
  ): Promise<boolean> {
    return this.exclusively(async () => {
      const change = await derive();
      if (!(await this.#store.registry.save(change))) return false;
      this.#apply(change);
      onApplied(change);
      return true;
    });
  }

  /**
   * Runs work that writes or reads connections and appliances of the store and then applies them in memory, one at a
   * time, so that what was read is never applied after something newer. The work must not wait for news.
   */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(work);
  }

  /**
   * Tries a change of the store. If it is refused on a site, it is tried again from the current records, because
   * another hub may have been faster.
   * @param attempt resolves with null if the change is refused
   * @returns null if it is refused all the same
   */
  async retryOnce<Result>(attempt: () => Promise<Result | null>): Promise<Result | null> {
    const result = await attempt();
    return result === null && (await this.#store.catchUp()) ? attempt() : result;
  }

  /** Applies changes in memory, which {@link writeUnwritten} or the next start writes: the store can't be written. */
  applyInMemory(change: RegistryChange): void {
    this.#unwritten.push(change);
    this.#apply(change);
  }

  /** Writes what is only in memory: the login of an unwritten connection would be refused. @throws Failure as {@link Store} */
  async writeUnwritten(): Promise<void> {
    await this.exclusively(async () => {
      for (let [change] = this.#unwritten; change !== undefined; [change] = this.#unwritten) {
        await this.#store.registry.save(change);
        this.#unwritten.shift();
      }
    });
  }

  #apply({ addedConnections = [], updatedConnections = [], removedConnections = [] }: RegistryChange): void {
    for (const connection of [...addedConnections, ...updatedConnections]) this.#byId.set(connection.id, connection);
    for (const id of removedConnections) this.#byId.delete(id);
  }

  /**
   * Takes over what the store has.
   * @param stored all stored connections
   * @returns the ids of the connections that no longer exist
   */
  replace(stored: readonly Connection[]): string[] {
    const found = new Set(stored.map(({ id }) => id));
    const removed = [...this.#byId.keys()].filter((id) => !found.has(id));
    this.#apply({ updatedConnections: stored, removedConnections: removed });
    return removed;
  }
}

/** The failure for an appliance whose connection another change has removed. */
export function connectionGoneFailure(appliance: string): Failure {
  return new Failure('connection_unknown', `the connection of ${appliance} was removed: try again`);
}

/** The failure for a name that is taken. @param holder the connection with that name, if known */
export function connectionExistsFailure(name: string, holder?: Connection): Failure {
  const advice =
    holder?.origin === 'declared'
      ? `it is declared in the hub's configuration; connect it with "latchkey pair ${name}", or choose another name`
      : 'choose another name, or remove it first';
  return new Failure('connection_exists', `there is a connection ${name} already: ${advice}`);
}
