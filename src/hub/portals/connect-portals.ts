import type { PortalClient } from '../../broker/portal-clients.ts';
import type { ConnectedPortal, ConnectedPortals } from '../../broker/ports.ts';
import type {
  HelperPortalConfiguration,
  OAuth2PortalConfiguration,
  PortalConfiguration,
} from '../../configuration/portals.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { samePortal } from '../../core/portals/identity.ts';
import { describeMovedEndpoint, type InspectedPortal, type PortalCheck } from '../../core/portals/portal-status.ts';
import type { Random } from '../../core/random.ts';
import type { SettingStore } from '../../core/store.ts';
import { HelperPortal } from '../../portal/helper/helper-portal.ts';
import type { OAuth2Portal } from '../../portal/oauth2/oauth2-portal.ts';
import type { MetadataCache } from '../../portal/oauth2/server-metadata.ts';
import { urlHost } from '../../system/addresses.ts';
import { sha256 } from '../../system/secret-hash.ts';

/** The configured portals, connected. */
export interface Portals extends ConnectedPortals, AsyncDisposable {
  /** What to report about a portal that has moved an endpoint; null if none has. */
  readonly moved: string | null;
  /** A portal as people inspect it; undefined if none has this name. */
  inspect(name: string): Pick<InspectedPortal, 'describeLogin' | 'check'> | undefined;
  /** The hub as the client of each portal. */
  readonly clients: ReadonlyMap<string, PortalClient>;
}

/** What the portals work with. */
export interface PortalsContext {
  /** The hub's address on the home network, null while there is none. */
  address(): string | null;
  /** The port that receives the redirects. */
  readonly httpPort: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly store: { readonly settings: Pick<SettingStore, 'get' | 'save'> };
  /** Null if the portals are only tried: then their metadata is fetched when it is needed. */
  readonly log: Pick<Log, 'warn'> | null;
}

/** `retry_lost_answer = "late"` is for portals that may end logins when a refresh token is used twice. */
const SHARED_LOGIN_ADVICE: PortalCheck = {
  name: 'logins',
  result: 'ok',
  detail:
    'a refresh token that is used twice may end the login here, and at some portals all logins of the account: let appliances of one account share a connection ("latchkey connection add")',
};

/** Connects the configured portals. */
export async function connectPortals(
  configurations: readonly PortalConfiguration[],
  context: PortalsContext,
): Promise<Portals> {
  const entries = await Promise.all(
    configurations.map(async (configuration) => {
      const { name, clientId, secretFile, appliedBy, policy } = configuration;
      const otherOrigins = configurations.filter((other) => other.name !== name).map(originOf);
      const identity = { origin: originOf(configuration), clientId, name, otherOrigins };
      const credentialLocation = {
        portal: name,
        ...(secretFile !== undefined && { secretFile }),
        ...(appliedBy && { appliedBy }),
      };
      const portal =
        configuration.type === 'helper'
          ? connectHelperPortal(configuration, credentialLocation, context)
          : await connectOAuth2Portal(configuration, credentialLocation, context);
      const { defaultScope = null } = configuration.type === 'oauth2' ? configuration.settings : {};
      const scope = defaultScope === null ? {} : { defaultScope };
      const preset = configuration.type === 'oauth2' ? configuration.preset : null;
      const digest = clientDigest(configuration);
      return [
        name,
        { portal, identity, credentialLocation, digest, ...policy, ...scope, ...(preset && { preset: preset.name }) },
      ] as const;
    }),
  );
  const connected = new Map(entries);
  return {
    names: [...connected.keys()],
    get: (name) => connected.get(name),
    get moved() {
      const messages = [...connected.values()].flatMap(({ portal, credentialLocation }) => {
        const { movedEndpoint } = portal;
        return movedEndpoint === null ? [] : describeMovedEndpoint(credentialLocation, movedEndpoint);
      });
      return messages.length === 0 ? null : messages.join('; ');
    },
    inspect(name) {
      const found = connected.get(name);
      if (found === undefined) return undefined;
      const { portal, retryLostAnswer } = found;
      const check: InspectedPortal['check'] = async (wall) => [
        ...(await portal.check(wall)),
        ...(retryLostAnswer === 'late' ? [SHARED_LOGIN_ADVICE] : []),
      ];
      return { describeLogin: () => portal.describeLogin(), check };
    },
    clients: new Map(
      entries.map(([name, { portal, credentialLocation, digest }]) => [
        name,
        { digest, credentialLocation, probeClient: () => portal.probeClient() },
      ]),
    ),
    nameOf: (wanted) => [...connected].find(([, { identity }]) => samePortal(identity, wanted))?.[0],
    async [Symbol.asyncDispose]() {
      await Promise.all([...connected.values()].map(({ portal }) => portal[Symbol.asyncDispose]()));
    },
  };
}

/** See `PortalClient.digest`; a key is told by its ID and its certificate, because it can't be read. */
function clientDigest(configuration: PortalConfiguration): string {
  const { clientId } = configuration;
  const { clientSecret, clientKey, clientAuth } =
    configuration.type === 'oauth2' ? configuration.settings : { ...configuration, clientKey: null, clientAuth: null };
  const key = [clientKey?.kid, clientKey?.thumbprints];
  return sha256(JSON.stringify([originOf(configuration), clientId, clientAuth, clientSecret?.reveal(), key]));
}

/** What identifies a portal: see `PortalIdentity`. */
export function originOf(configuration: PortalConfiguration): string {
  if (configuration.type === 'helper') return new URL(configuration.frontendUrl).origin;
  const { issuer, endpoints } = configuration.settings;
  return issuer ?? endpoints.token ?? '';
}

function connectHelperPortal(
  configuration: HelperPortalConfiguration,
  credentialLocation: ConnectedPortal['credentialLocation'],
  { address, httpPort }: PortalsContext,
): HelperPortal {
  const { redirect } = configuration;
  const redirectUrl = (nonce: string) => {
    if (redirect === 'off') return null;
    if (redirect !== 'auto') return `${redirect.replace(/\/$/, '')}/callback/${nonce}`;
    const callback = callbackAddress(address(), httpPort);
    return callback && `${callback}/${nonce}`;
  };
  return new HelperPortal({ ...configuration, credentialLocation, redirectUrl });
}

async function connectOAuth2Portal(
  { name, settings, ca, proxy }: OAuth2PortalConfiguration,
  credentialLocation: ConnectedPortal['credentialLocation'],
  { address, httpPort, store, log, ...environment }: PortalsContext,
): Promise<OAuth2Portal> {
  // A hub without such a portal does not need the library that it uses.
  const { OAuth2Portal } = await import('../../portal/oauth2/oauth2-portal.ts');
  const portal = new OAuth2Portal({
    settings,
    credentialLocation,
    ca,
    proxy,
    ...environment,
    callbackAddress: () => callbackAddress(address(), httpPort),
    metadataCache: metadataCache(name, store),
  });
  if (log === null) return portal;
  // The hub starts without it, but a person should know why no login is possible yet.
  void portal.loadMetadata().then((detail) => {
    if (detail !== null) log.warn('portal_metadata_missing', { portal: name, detail });
  });
  return portal;
}

/** The hub's own redirect URI; null while it has no address. */
export function callbackAddress(address: string | null, port: number): string | null {
  return address && `http://${urlHost(address)}:${port}/callback`;
}

/** The store's setting with the metadata of a portal; empty for none. */
export function metadataSetting(portal: string): string {
  return `metadata of ${portal}`;
}

/** A portal's metadata as a setting of the store. */
function metadataCache(portal: string, store: PortalsContext['store']): MetadataCache {
  const setting = metadataSetting(portal);
  let saved: string | null = null;
  return {
    async load() {
      saved = await store.settings.get(setting);
      return saved;
    },
    async save(document) {
      if (document === saved) return;
      saved = document;
      // A store that can't be written is reported where tokens are written.
      await store.settings.save({ [setting]: document }).catch(() => undefined);
    },
  };
}
