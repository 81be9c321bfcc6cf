import type { ConnectedPortals } from '../broker/ports.ts';
import type { PortalConfiguration } from '../configuration/configuration.ts';
import { samePortal } from '../core/portals/identity.ts';
import { HelperPortal } from '../portal/helper/helper-portal.ts';
import { urlHost } from '../system/addresses.ts';

/** The configured portals, connected. */
export interface Portals extends ConnectedPortals, AsyncDisposable {}

/**
 * Connects the configured portals.
 * @param address the hub's address on the home network, null while there is none
 * @param httpPort the port that receives the redirects
 */
export function connectPortals(
  configurations: readonly PortalConfiguration[],
  address: () => string | null,
  httpPort: number,
): Portals {
  const originOf = ({ frontendUrl }: Pick<PortalConfiguration, 'frontendUrl'>) => new URL(frontendUrl).origin;
  const connected = new Map(
    configurations.map(({ name, secretFile, appliedBy, redirect, ...settings }) => {
      const { retryLostAnswer, loginLifetime, idleLifetime, refreshEndsAccessToken } = settings;
      const redirectUrl = (nonce: string) => redirectUrlFor(redirect, nonce, address(), httpPort);
      const otherOrigins = configurations.filter((other) => other.name !== name).map(originOf);
      const identity = { origin: originOf(settings), clientId: settings.clientId, name, otherOrigins };
      const credentialLocation = {
        portal: name,
        ...(secretFile !== undefined && { secretFile }),
        ...(appliedBy && { appliedBy }),
      };
      const portal = new HelperPortal({ ...settings, credentialLocation, redirectUrl });
      const behaviour = { retryLostAnswer, loginLifetime, idleLifetime, refreshEndsAccessToken };
      return [name, { portal, identity, credentialLocation, ...behaviour }];
    }),
  );
  return {
    names: [...connected.keys()],
    get: (name) => connected.get(name),
    nameOf: (wanted) => [...connected].find(([, { identity }]) => samePortal(identity, wanted))?.[0],
    async [Symbol.asyncDispose]() {
      await Promise.all([...connected.values()].map(({ portal }) => portal[Symbol.asyncDispose]()));
    },
  };
}

function redirectUrlFor(setting: string, nonce: string, address: string | null, port: number): string | null {
  if (setting === 'off') return null;
  if (setting !== 'auto') return `${setting.replace(/\/$/, '')}/callback/${nonce}`;
  if (address === null) return null;
  return `http://${urlHost(address)}:${port}/callback/${nonce}`;
}
