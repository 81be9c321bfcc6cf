import {
  type PortalTables,
  parsePortalTables,
  readAddedPortals,
  serializePortalTables,
} from '../../configuration/added-portals.ts';
import type { PortalConfiguration } from '../../configuration/portals.ts';
import { Failure } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { Store } from '../../core/store.ts';

/** The store's setting with the portals that people have added. */
const SETTING = 'portals';

type PortalStore = Pick<Store, 'setting' | 'replaceSettings'>;

/** The portals that people have added: what this hub runs with, and what the next one will run with. */
export class AddedPortals {
  readonly #store: PortalStore;
  /** As this hub has last read or written it. */
  #text: string | null;
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
    const text = await store.setting(SETTING);
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
    return parsePortalTables(await this.#store.setting(SETTING));
  }

  /**
   * Changes what is stored.
   * @param forgotten the names of settings that are emptied with it
   * @throws Failure `not_allowed` if another hub of the site changes it at the same time, and whatever `change` throws
   */
  async change(change: (stored: PortalTables) => PortalTables, ...forgotten: string[]): Promise<void> {
    const before = await this.#store.setting(SETTING);
    const text = serializePortalTables(change(parsePortalTables(before)));
    const others = Object.fromEntries(forgotten.map((setting) => [setting, '']));
    if (!(await this.#store.replaceSettings({ [SETTING]: before }, { [SETTING]: text, ...others })))
      throw new Failure('not_allowed', 'another hub of the site has just changed the portals: try again');
    this.#text = text;
  }

  /** Whether another hub of the site has changed them, so that this hub must start again. */
  async isReplaced(): Promise<boolean> {
    return (await this.#store.setting(SETTING)) !== this.#text;
  }
}
