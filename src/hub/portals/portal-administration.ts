import { isDeepStrictEqual } from 'node:util';
import type { Connections } from '../../broker/connections/connections.ts';
import type { PortalClients } from '../../broker/portal-clients.ts';
import { addedPortal, readAddedPortals } from '../../configuration/added-portals.ts';
import type { RawTable } from '../../configuration/environment-overrides.ts';
import type { PortalConfiguration } from '../../configuration/portals.ts';
import { rfc3339 } from '../../core/clock.ts';
import { joinNames } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import { checkName, type Named } from '../../core/name.ts';
import type { PortalAddition, PortalAdministration } from '../../core/portals/portal-administration.ts';
import type { ReloadControl } from '../../core/reload.ts';
import type { AddedPortals } from './added-portals.ts';
import {
  callbackAddress,
  connectPortals,
  metadataSetting,
  originOf,
  type Portals,
  type PortalsContext,
} from './connect-portals.ts';

/** What {@link openPortalAdministration} needs. */
export interface PortalAdministrationContext extends Omit<PortalsContext, 'store' | 'log'> {
  readonly log: Log;
  readonly portals: Portals;
  readonly portalClients: Pick<PortalClients, 'accept' | 'rejected'>;
  /** The portals of the configuration, and those that people have added. */
  readonly configured: readonly PortalConfiguration[];
  readonly added: AddedPortals;
  readonly connections: Pick<Connections, 'list'>;
  /** When each portal last responded. */
  readonly reached: ReadonlyMap<string, { readonly wall: number }>;
  readonly httpsPort: number;
  /** Absent if the hub can't be replaced by one with other portals. */
  readonly reloads: ReloadControl | undefined;
}

/** Creates the operations on portals. @param user who does them, for the log */
export function createPortalAdministration(context: PortalAdministrationContext, user?: string): PortalAdministration {
  const { portals, portalClients, configured, added, connections, reached, clock, log } = context;
  const isDeclared = (name: string) => configured.some((portal) => portal.name === name) && !added.names.has(name);

  /** @throws Failure `portal_unknown` */
  function inspectPortal(name: string) {
    const portal = portals.inspect(name);
    if (portal !== undefined) return portal;
    throw new Failure('portal_unknown', `there is no portal ${name}: "latchkey portals" lists the existing ones`);
  }

  /** @throws Failure `portal_declared` */
  function assertNotDeclared(name: string): void {
    if (!isDeclared(name)) return;
    throw new Failure(
      'portal_declared',
      `the configuration of the hub declares the portal ${name}: change it there, and run "latchkey reload"`,
    );
  }

  /** @throws Failure `portal_in_use` */
  function assertUnused(name: string): void {
    const users = connections.list().flatMap((connection) => (connection.portal === name ? [connection.name] : []));
    if (users.length === 0) return;
    throw new Failure(
      'portal_in_use',
      `${joinNames(users)} ${users.length === 1 ? 'logs' : 'log'} in at the portal ${name}: remove ${users.length === 1 ? 'it' : 'them'} first ("latchkey appliance remove", "latchkey connection remove")`,
    );
  }

  /** @throws Failure `not_allowed` */
  function requireReloads(): ReloadControl {
    if (context.reloads !== undefined) return context.reloads;
    throw new Failure('not_allowed', 'a hub in test mode has the portal of its emulator, and no others');
  }

  /** Checks a portal, and stores it for the next hub. See `PortalAdministration.addPortal`. */
  async function tryAndStore(name: string, table: RawTable, replace: boolean): Promise<PortalAddition> {
    const reloads = requireReloads();
    // One that this version can't use is in no list, so its name is free.
    const isUnusable = !added.names.has(name) && !(await added.isReplaced());
    const assertFree = (existing: object | undefined) => {
      // The same one again: a form or a command that was sent twice.
      if (existing === undefined || replace || isUnusable || isDeepStrictEqual(existing, table)) return;
      throw new Failure(
        'portal_exists',
        `there is a portal ${name} already: choose another name, or add --replace to enter its data again`,
      );
    };
    assertFree((await added.read())[name]);
    const { portals: found, problems } = await readAddedPortals({ [name]: table });
    const [configuration] = found;
    if (configuration === undefined) {
      const members = [...problems].map(([key, problem]) => [key.replace(`portals.${name}.`, ''), problem] as const);
      return { kind: 'invalid', problems: new Map(members) };
    }
    await using tried = await connectPortals([configuration], { ...context, store: NO_STORE, log: null });
    const checks = (await tried.inspect(name)?.check(() => clock.now().wall)) ?? [];
    const wrong = new Map(
      checks.flatMap(({ wrongKey, detail }) => (wrongKey === undefined ? [] : [[wrongKey, detail]])),
    );
    // Another server may reject the client of this portal.
    const addresses = new Map([...wrong].filter(([key]) => key !== 'client_id' && Object.hasOwn(table, key)));
    if (addresses.size > 0) return { kind: 'other_address', problems: addresses };
    if (wrong.has('client_id')) return { kind: 'client_rejected', checks };
    // The data that a person has entered counts, not what the portal said of its endpoints before.
    const reload = await reloads.prepareAfter(() =>
      added.change((stored) => {
        assertFree(stored[name]);
        return { ...stored, [name]: table };
      }, metadataSetting(name)),
    );
    log.info('portal_added', { portal: name, user });
    return { kind: 'added', checks, reload };
  }

  return {
    portals: () => titlePortals(configured, added.names),
    describePortals() {
      const titled = titlePortals(configured, added.names);
      return configured.map((portal, index) => {
        const { name, type } = portal;
        const { title = name } = titled[index] ?? {};
        const { login, redirectUri } = inspectPortal(name).describeLogin();
        const at = reached.get(name);
        const preset = presetOf(portal);
        return {
          name,
          title,
          type,
          login,
          redirectUri,
          reached: at === undefined ? null : rfc3339(at.wall),
          ...(preset && { preset: preset.name }),
          ...(added.names.has(name) && { added: true as const }),
        };
      });
    },
    async enteredPortal(name) {
      if (!added.names.has(name)) return null;
      const { client_secret: _, ...keys } = (await added.read())[name] ?? {};
      return keys;
    },
    async checkPortal(name) {
      const checks = await inspectPortal(name).check(() => clock.now().wall);
      // Somebody may have corrected it at the cloud.
      if (checks.some((check) => check.name === 'client' && check.result === 'ok')) portalClients.accept(name);
      return checks;
    },
    async cloudChoices() {
      const { describeClouds } = await import('../../configuration/cloud-choices.ts');
      const { address, httpPort } = context;
      return describeClouds({
        lan: callbackAddress(address(), httpPort),
        localhost: callbackAddress('localhost', httpPort),
      });
    },
    async addPortal({ name, keys, clientSecret, replace, keepsSecret }) {
      checkName('portal', name);
      assertNotDeclared(name);
      const { client_secret: secret, ...before } = (await added.read())[name] ?? {};
      const entered = addedPortal(keys, clientSecret);
      const isKept =
        keepsSecret === true &&
        secret !== undefined &&
        isDeepStrictEqual({ ...before, redirect_uri: null }, { ...entered, redirect_uri: null });
      const table = isKept ? { ...entered, client_secret: secret } : entered;
      return added.addOnce(name, table, () => tryAndStore(name, table, replace));
    },
    async removePortal(name) {
      assertNotDeclared(name);
      assertUnused(name);
      const reload = await requireReloads().prepareAfter(() =>
        added.change(({ [name]: removed, ...others }) => {
          if (removed === undefined) inspectPortal(name);
          assertUnused(name);
          return others;
        }),
      );
      log.info('portal_removed', { portal: name, user });
      return reload;
    },
  };
}

function presetOf(configuration: PortalConfiguration): Named | null {
  return configuration.type === 'oauth2' ? configuration.preset : null;
}

/**
 * What people call the portals. If several have the same title, each has its name, too.
 * @param added the names of those that people have added
 */
function titlePortals(
  configured: readonly PortalConfiguration[],
  added: ReadonlySet<string>,
): ReturnType<PortalAdministration['portals']> {
  const ownTitle = (portal: PortalConfiguration) =>
    added.has(portal.name) ? URL.parse(originOf(portal))?.host : undefined;
  const titles = configured.map((portal) => portal.title ?? presetOf(portal)?.title ?? ownTitle(portal) ?? portal.name);
  return configured.map((portal, index) => {
    const { name } = portal;
    const title = titles[index] ?? name;
    return {
      name,
      address: originOf(portal),
      title: titles.indexOf(title) === titles.lastIndexOf(title) ? title : `${title} (${name})`,
    };
  });
}

/** A portal that is only tried leaves nothing in the store. */
const NO_STORE: PortalsContext['store'] = { settings: { get: async () => null, save: async () => undefined } };
