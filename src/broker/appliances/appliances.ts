import { type Appliance, checkApplianceName, checkScope } from '../../core/appliances/appliance.ts';
import { deriveApplianceName } from '../../core/appliances/registration.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import { Secret } from '../../core/secret.ts';
import type { Store } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';

/** The most appliances on one hub. */
const MAX_APPLIANCES = 10_000;
/** Bytes of an appliance's secret. */
const SECRET_BYTES = 32;

/** An appliance, with its secret that is shown only once. */
export interface Credentials {
  readonly appliance: Appliance;
  readonly secret: Secret;
}

/** The registry of the hub's appliances. */
export class Appliances {
  readonly #store: Store;
  readonly #random: Random;
  /** The names of the configured portals, the default one first. */
  readonly portals: readonly string[];
  readonly #byId = new Map<string, Appliance>();
  readonly #byClientId = new Map<string, Appliance>();

  #updateQueue: Promise<unknown> = Promise.resolve();

  private constructor(store: Store, random: Random, portals: readonly string[]) {
    this.#store = store;
    this.#random = random;
    this.portals = portals;
  }

  /** @param portals the names of the configured portals, the default one first */
  static async load(store: Store, random: Random, portals: readonly string[]): Promise<Appliances> {
    const appliances = new Appliances(store, random, portals);
    for (const appliance of await store.appliances()) appliances.#addToIndex(appliance);
    return appliances;
  }

  /** All appliances, sorted by name. */
  list(): Appliance[] {
    return [...this.#byId.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  byId(id: string): Appliance | undefined {
    return this.#byId.get(id);
  }

  byClientId(clientId: string): Appliance | undefined {
    return this.#byClientId.get(clientId);
  }

  /** The appliance with this name; the name need not be valid. */
  find(name: string): Appliance | undefined {
    return [...this.#byId.values()].find((appliance) => appliance.name === name);
  }

  /** @throws Failure `appliance_unknown`, `name_invalid` */
  get(name: string): Appliance {
    const found = this.find(checkApplianceName(name));
    if (found !== undefined) return found;
    throw new Failure(
      'appliance_unknown',
      `there is no appliance ${name}: "latchkey appliance list" lists the existing ones`,
    );
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

  /** @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, or as {@link insert} */
  async add(name: string, scope: string | null, portal: string | null): Promise<Credentials> {
    const chosen = this.resolvePortal(portal);
    const secret = this.generateSecret();
    const id = this.#random.uuid();
    const appliance: Appliance = {
      id,
      clientId: id,
      name: checkApplianceName(name),
      scope: checkScope(scope),
      portal: chosen,
      credentials: { kind: 'secret', hash: sha256(secret.reveal()) },
      origin: 'added',
      waitingSince: null,
      softwareId: null,
    };
    await this.releaseName(name);
    if (!(await this.insert(appliance))) throw applianceExistsFailure(name, this.find(name));
    return { appliance, secret };
  }

  /**
   * Stores a new appliance.
   * @param invite the hash of its invite, which is consumed in the same transaction
   * @returns false if its name or client_id is taken, or the invite is gone
   * @throws Failure `not_allowed` if there are too many appliances, or as {@link Store}
   */
  async insert(appliance: Appliance, invite?: string): Promise<boolean> {
    if (this.#byId.size >= MAX_APPLIANCES) {
      throw new Failure('not_allowed', `the hub has the maximum of ${MAX_APPLIANCES} appliances: remove unused ones`);
    }
    if (!(await this.#store.addAppliance(appliance, invite))) return false;
    this.#addToIndex(appliance);
    return true;
  }

  /**
   * Frees a name that an installer wants for another appliance. An appliance that waits for approval gives up its name
   * and gets another one, because any device may have registered with that name.
   * @throws Failure as {@link update}
   */
  async releaseName(name: string): Promise<void> {
    const holder = this.find(name);
    if (holder === undefined || holder.waitingSince === null) return;
    await this.update(holder.id, (current) => {
      if (current.waitingSince === null || current.name !== name) return current;
      return { ...current, name: deriveApplianceName(name, (taken) => this.find(taken) !== undefined) };
    });
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
   * @throws Failure `not_allowed` if it is not waiting for approval, `appliance_unknown`, or as {@link Store}
   */
  async approve({ id }: Appliance): Promise<Appliance> {
    return this.update(id, (current) => {
      assertNotDamaged(current);
      if (current.waitingSince !== null) {
        const { registeredFrom: _, ...approved } = current;
        return { ...approved, waitingSince: null };
      }
      const reason =
        current.credentials.kind === 'none'
          ? `it has no credentials, so its token can't be requested: "latchkey appliance list" says what to do`
          : 'it may already request tokens; nothing to do';
      throw new Failure('not_allowed', `${current.name} is not waiting for approval: ${reason}`);
    });
  }

  /** @throws Failure `appliance_declared`, or as {@link Store} */
  async remove(appliance: Appliance): Promise<void> {
    assertNotDeclared(appliance);
    await this.#store.removeAppliance(appliance.id);
    this.#removeFromIndex(appliance.id);
  }

  /**
   * Updates are serialized: each starts from the result of the previous one.
   * @throws Failure `appliance_unknown` if it was removed, or its new name or client_id is taken; whatever `change`
   * throws; or as {@link Store}
   */
  update(id: string, change: (current: Appliance) => Appliance): Promise<Appliance> {
    const updated = this.#updateQueue.then(async () => {
      const gone = new Failure(
        'appliance_unknown',
        'the appliance was removed meanwhile: "latchkey appliance list" lists the existing ones',
      );
      const current = this.#byId.get(id);
      if (current === undefined) throw gone;
      const next = change(current);
      if (!(await this.#store.updateAppliance(next)) || !this.#byId.has(id)) throw gone;
      this.#replaceInIndex(next);
      return next;
    });
    this.#updateQueue = updated.catch(() => undefined);
    return updated;
  }

  /** Replaces an appliance only in memory while the store can't be written; the next start loads the stored one. */
  setInMemory(appliance: Appliance): void {
    this.#replaceInIndex(appliance);
  }

  #replaceInIndex(appliance: Appliance): void {
    this.#removeFromIndex(appliance.id);
    this.#addToIndex(appliance);
  }

  #addToIndex(appliance: Appliance): void {
    this.#byId.set(appliance.id, appliance);
    this.#byClientId.set(appliance.clientId, appliance);
  }

  #removeFromIndex(id: string): void {
    const existing = this.#byId.get(id);
    if (existing === undefined) return;
    this.#byId.delete(id);
    this.#byClientId.delete(existing.clientId);
  }
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
