import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Connection, checkConnectionName } from '../../core/connections/connection.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import type { RegistryChange, Store } from '../../core/store.ts';

/** The most connections on one hub: one for each appliance, and some to be shared. */
const MAX_CONNECTIONS = 20_000;

/** The hub's connections, by id and name. */
export class Connections {
  readonly #store: Pick<Store, 'connections' | 'saveRegistry'>;
  readonly #random: Pick<Random, 'uuid'>;
  /** The names of the configured portals, the default one first. */
  readonly portals: readonly string[];
  readonly #byId = new Map<string, Connection>();

  private constructor(
    store: Pick<Store, 'connections' | 'saveRegistry'>,
    random: Pick<Random, 'uuid'>,
    portals: readonly string[],
  ) {
    this.#store = store;
    this.#random = random;
    this.portals = portals;
  }

  /** @param portals the names of the configured portals, the default one first */
  static async load(
    store: Pick<Store, 'connections' | 'saveRegistry'>,
    random: Pick<Random, 'uuid'>,
    portals: readonly string[],
  ): Promise<Connections> {
    const connections = new Connections(store, random, portals);
    for (const connection of await store.connections()) connections.#byId.set(connection.id, connection);
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

  /** @throws Failure `connection_unknown`, `name_invalid` */
  get(name: string): Connection {
    const found = this.find(checkConnectionName(name));
    if (found !== undefined) return found;
    throw new Failure(
      'connection_unknown',
      `there is no connection ${name}: "latchkey connection list" lists the existing ones`,
    );
  }

  /** The connection that an appliance uses. */
  ofAppliance({ connection, name }: Pick<Appliance, 'connection' | 'name'>): Connection {
    const found = this.#byId.get(connection);
    if (found !== undefined) return found;
    throw new Failure('connection_unknown', `the connection of ${name} was removed: try again`);
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
    throw new Failure('portal_unknown', `there is no portal ${chosen}; configured portals: ${this.portals.join(', ')}`);
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
  async add(name: string, scope: string | null, portal: string | null): Promise<Connection> {
    const connection = this.create(name, scope, portal);
    if (this.#byId.size >= MAX_CONNECTIONS) {
      throw new Failure('not_allowed', `the hub has the maximum of ${MAX_CONNECTIONS} connections: remove unused ones`);
    }
    if (!(await this.save({ addedConnections: [connection] }))) throw connectionExistsFailure(name, this.find(name));
    return connection;
  }

  /**
   * A new connection, which is not stored yet.
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`
   */
  create(name: string, scope: string | null, portal: string | null): Connection {
    return {
      id: this.#random.uuid(),
      name: checkConnectionName(name),
      portal: this.resolvePortal(portal),
      scope: checkScope(scope),
      origin: 'added',
    };
  }

  /**
   * Writes changes, and then applies those of connections.
   * @returns false if they don't apply, see {@link Store.saveRegistry}
   * @throws Failure as {@link Store}
   */
  async save(change: RegistryChange): Promise<boolean> {
    if (!(await this.#store.saveRegistry(change))) return false;
    this.applyInMemory(change);
    return true;
  }

  /** Applies changes of connections only in memory. */
  applyInMemory({ addedConnections = [], updatedConnections = [], removedConnections = [] }: RegistryChange): void {
    for (const connection of [...addedConnections, ...updatedConnections]) this.#byId.set(connection.id, connection);
    for (const id of removedConnections) this.#byId.delete(id);
  }
}

/** The failure for a name that is taken. @param holder the connection with that name, if known */
function connectionExistsFailure(name: string, holder?: Connection): Failure {
  const advice =
    holder?.origin === 'declared'
      ? `it is declared in the hub's configuration; connect it with "latchkey pair ${name}", or choose another name`
      : 'choose another name, or remove it first';
  return new Failure('connection_exists', `there is a connection ${name} already: ${advice}`);
}
