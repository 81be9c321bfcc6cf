import { type Appliance, checkName, checkScope } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Random } from '../core/random.ts';
import { Secret } from '../core/secret.ts';
import type { Store } from '../core/store.ts';
import { sha256 } from '../system/compare.ts';

/** The most appliances that one hub takes. */
const MOST = 10_000;
/** Bytes of an appliance's secret. */
const SECRET_BYTES = 32;

/** An appliance with the secret that is shown this once. */
export interface Credentials {
  readonly appliance: Appliance;
  readonly secret: Secret;
}

/** The appliances that the hub knows. */
export class Appliances {
  readonly #store: Store;
  readonly #random: Random;
  readonly #portals: readonly string[];
  readonly #byId = new Map<string, Appliance>();
  readonly #byClientId = new Map<string, Appliance>();

  #changes: Promise<unknown> = Promise.resolve();

  private constructor(store: Store, random: Random, portals: readonly string[]) {
    this.#store = store;
    this.#random = random;
    this.#portals = portals;
  }

  /** @param portals the names of the configured portals, the default one first */
  static async load(store: Store, random: Random, portals: readonly string[]): Promise<Appliances> {
    const appliances = new Appliances(store, random, portals);
    for (const appliance of await store.appliances()) appliances.#keep(appliance);
    return appliances;
  }

  /** All of them, by name. */
  list(): Appliance[] {
    return [...this.#byId.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  byId(id: string): Appliance | undefined {
    return this.#byId.get(id);
  }

  byClientId(clientId: string): Appliance | undefined {
    return this.#byClientId.get(clientId);
  }

  /** @throws Failure `appliance_unknown` */
  named(name: string): Appliance {
    checkName(name);
    const found = this.list().find((appliance) => appliance.name === name);
    if (found !== undefined) return found;
    throw new Failure(
      'appliance_unknown',
      `there is no appliance ${name}: "latchkey appliance list" shows those there are`,
    );
  }

  /** @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, or as the store */
  async add(name: string, scope: string | null, portal: string | null): Promise<Credentials> {
    const [first] = this.#portals;
    const chosen = portal ?? first;
    if (chosen === undefined || !this.#portals.includes(chosen)) {
      throw new Failure(
        'portal_unknown',
        `there is no portal ${chosen}: the configuration has ${this.#portals.join(', ')}`,
      );
    }
    if (this.#byId.size >= MOST) {
      throw new Failure('not_allowed', `the hub has ${MOST} appliances, and takes no more: remove those that are gone`);
    }
    const secret = new Secret(this.#random.token(SECRET_BYTES));
    const id = this.#random.uuid();
    const appliance: Appliance = {
      id,
      clientId: id,
      name: checkName(name),
      scope: checkScope(scope),
      portal: chosen,
      credentials: { kind: 'secret', hash: sha256(secret.reveal()) },
      origin: 'added',
      waitingSince: null,
      softwareId: null,
    };
    if (!(await this.#store.addAppliance(appliance))) {
      throw new Failure(
        'appliance_exists',
        `there is an appliance ${name} already: choose another name, or remove it first`,
      );
    }
    this.#keep(appliance);
    return { appliance, secret };
  }

  async rotateSecret({ id }: Appliance): Promise<Credentials> {
    const secret = new Secret(this.#random.token(SECRET_BYTES));
    const hash = sha256(secret.reveal());
    const appliance = await this.#change(id, (current) => ({ ...current, credentials: { kind: 'secret', hash } }));
    return { appliance, secret };
  }

  async remove({ id }: Appliance): Promise<void> {
    await this.#store.removeAppliance(id);
    this.#forget(id);
  }

  /** Changes are made one after the other: each begins with what the one before has left. */
  #change(id: string, change: (current: Appliance) => Appliance): Promise<Appliance> {
    const changed = this.#changes.then(async () => {
      const current = this.#byId.get(id);
      const gone = new Failure('appliance_unknown', 'the appliance was removed meanwhile');
      if (current === undefined) throw gone;
      const next = change(current);
      if (!(await this.#store.changeAppliance(next)) || !this.#byId.has(id)) throw gone;
      this.#forget(id);
      this.#keep(next);
      return next;
    });
    this.#changes = changed.catch(() => undefined);
    return changed;
  }

  #keep(appliance: Appliance): void {
    this.#byId.set(appliance.id, appliance);
    this.#byClientId.set(appliance.clientId, appliance);
  }

  #forget(id: string): void {
    const known = this.#byId.get(id);
    if (known === undefined) return;
    this.#byId.delete(id);
    this.#byClientId.delete(known.clientId);
  }
}
