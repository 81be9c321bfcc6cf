import * as v from 'valibot';
import type { DeclaredAppliance } from '../../core/appliances/appliance.ts';
import type { DeclaredConnection } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import { OWN_DECLARATIONS_SETTING } from '../../core/site.ts';
import type { BrokerStore } from '../ports.ts';

/** What a configuration declares. */
interface DeclaredNames {
  readonly connections: readonly Pick<DeclaredConnection, 'name'>[];
  readonly appliances: readonly Pick<DeclaredAppliance, 'name' | 'connection'>[];
}

/** An appliance or a connection that a configuration declares. */
type DeclarationKey = `appliances/${string}` | `connections/${string}`;

const storedKeys = v.pipe(v.string(), v.parseJson(), v.array(v.string()));

/**
 * What the configuration of this hub declared at its last start. A hub of a site removes only such appliances and
 * connections when its configuration no longer declares them, because the configuration of another hub may declare
 * more. A hub that is alone removes all that are no longer declared.
 */
export class OwnDeclarations {
  readonly #store: Pick<BrokerStore, 'site' | 'saveSetting'>;
  readonly #before: ReadonlySet<string> | null;

  private constructor(store: Pick<BrokerStore, 'site' | 'saveSetting'>, before: ReadonlySet<string> | null) {
    this.#store = store;
    this.#before = before;
  }

  /** @throws Failure as {@link Store} */
  static async load(store: Pick<BrokerStore, 'site' | 'setting' | 'saveSetting'>): Promise<OwnDeclarations> {
    if (store.site === null) return new OwnDeclarations(store, null);
    const stored = v.safeParse(storedKeys, await store.setting(OWN_DECLARATIONS_SETTING));
    return new OwnDeclarations(store, new Set(stored.success ? stored.output : []));
  }

  /** Whether this hub may end what is no longer declared. */
  includes(key: DeclarationKey): boolean {
    return this.#before?.has(key) ?? true;
  }

  /** Saves what is declared now. If the store can't be written, nothing was ended either. */
  async save({ connections, appliances }: DeclaredNames): Promise<void> {
    const before = this.#before;
    if (before === null) return;
    // An appliance that is declared without a connection declares one of its name.
    const own = appliances.filter(({ connection }) => connection === null);
    const keys = [
      ...[...connections, ...own].map(({ name }): DeclarationKey => `connections/${name}`),
      ...appliances.map(({ name }): DeclarationKey => `appliances/${name}`),
    ];
    if (keys.length === before.size && keys.every((key) => before.has(key))) return;
    await this.#store.saveSetting(OWN_DECLARATIONS_SETTING, JSON.stringify(keys)).catch((error: unknown) => {
      if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
    });
  }
}
