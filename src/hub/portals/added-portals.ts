import { isDeepStrictEqual } from 'node:util';
import {
  type PortalTables,
  parsePortalTables,
  readAddedPortals,
  serializePortalTables,
} from '../../configuration/added-portals.ts';
import type { RawTable } from '../../configuration/environment-overrides.ts';
import type { PortalConfiguration } from '../../configuration/portals.ts';
import { Failure } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { PortalAddition } from '../../core/portals/portal-administration.ts';
import type { Store } from '../../core/store.ts';

/** The store's setting with the portals that people have added. */
const SETTING = 'portals';

type PortalStore = Pick<Store, 'settings'>;

/** The portals that people have added: what this hub runs with, and what the next one will run with. */
export class AddedPortals {
  readonly #store: PortalStore;
  /** As this hub has last read or written it. */
  #text: string | null;
  /** What is being added, or was. */
  #adding: { readonly name: string; readonly table: RawTable; readonly addition: Promise<PortalAddition> } | null =
    null;
  /** Those that this hub runs with: valid, and not declared by its configuration, which wins. */
  readonly portals: readonly PortalConfiguration[];
  readonly names: ReadonlySet<string>;

  private constructor(store: PortalStore, text: string | null, portals: readonly PortalConfiguration[]) {
    this.#store = store;
    this.#text = text;
    this.portals = portals;
    this.names = new Set(portals.map(({ name }) => name));
  }

  /**
   * Reads them at the start of a hub. One that this version or this configuration can't use is logged, and stays stored.
   * @param declared the portals of the configuration
   */
  static async load(store: PortalStore, declared: readonly PortalConfiguration[], log: Log): Promise<AddedPortals> {
    const text = await store.settings.get(SETTING);
    const { portals, problems } = await readAddedPortals(parsePortalTables(text));
    for (const [key, problem] of problems) log.error('added_portal_invalid', { detail: `${key}: ${problem}` });
    const isDeclared = ({ name }: PortalConfiguration) => declared.some((one) => one.name === name);
    for (const { name } of portals.filter(isDeclared)) log.warn('added_portal_hidden', { portal: name });
    return new AddedPortals(
      store,
      text,
      portals.filter((portal) => !isDeclared(portal)),
    );
  }

  /** What is stored now. */
  async read(): Promise<PortalTables> {
    return parsePortalTables(await this.#store.settings.get(SETTING));
  }

  /**
   * Changes what is stored.
   * @param forgotten the names of settings that are emptied with it
   * @throws Failure `not_allowed` if another hub of the site changes it at the same time, and whatever `change` throws
   */
  async change(change: (stored: PortalTables) => PortalTables, ...forgotten: string[]): Promise<void> {
    const before = await this.#store.settings.get(SETTING);
    const text = serializePortalTables(change(parsePortalTables(before)));
    const others = Object.fromEntries(forgotten.map((setting) => [setting, '']));
    if (!(await this.#store.settings.replace({ [SETTING]: before }, { [SETTING]: text, ...others })))
      throw new Failure('not_allowed', 'another hub of the site has just changed the portals: try again');
    this.#text = text;
  }

  /**
   * Adds a portal once for a form or a command that is sent twice. If it was added, this hub is about to be replaced.
   * @param add not called if the same portal is being added, or was added
   */
  addOnce(name: string, table: RawTable, add: () => Promise<PortalAddition>): Promise<PortalAddition> {
    const { name: current, table: data, addition: running } = this.#adding ?? {};
    if (running !== undefined && current === name && isDeepStrictEqual(data, table)) return running;
    const addition = add();
    const adding = { name, table, addition };
    const forget = () => {
      if (this.#adding === adding) this.#adding = null;
    };
    this.#adding = adding;
    addition.then(({ kind }) => kind !== 'added' && forget(), forget);
    return addition;
  }

  /** Whether another hub of the site has changed them, so that this hub must start again. */
  async isReplaced(): Promise<boolean> {
    return (await this.#store.settings.get(SETTING)) !== this.#text;
  }
}
