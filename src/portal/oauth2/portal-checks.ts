import type { AuthorizationServer } from 'oauth4webapi';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import type { LoginLinkOutcome } from '../../core/portals/portal.ts';
import type { PortalCheck } from '../../core/portals/portal-status.ts';
import {
  checkClient,
  clientAccepted,
  clientRejected,
  clientUnchecked,
  INVALID_REFRESH_TOKEN,
} from '../client-check.ts';
import { checkConnections } from '../connection-checks.ts';
import type { PooledHttpClient, PortalResponse, RequestOutcome } from '../http.ts';
import type { MetadataSource } from './server-metadata.ts';
import type { Endpoints, OAuth2Settings } from './settings.ts';

/** What the checks of an authorization server work with. */
interface CheckContext {
  readonly settings: OAuth2Settings;
  readonly credentialLocation: CredentialLocation;
  readonly metadata: MetadataSource;
  readonly http: PooledHttpClient;
  /** The hub's clock, in ms since 1970. */
  readonly wall: () => number;
  /** Whether a person logs in with a device code, as far as the endpoints are known. */
  readonly usesDeviceCode: () => boolean;
  readonly requestDeviceCode: (server: AuthorizationServer) => Promise<LoginLinkOutcome>;
  readonly refresh: (server: AuthorizationServer, token: string) => Promise<RequestOutcome>;
  /** What the response to a refresh means. */
  readonly classify: (response: PortalResponse) => TokenOutcome['kind'];
}

/** Checks an authorization server without a login. */
export async function checkAuthorizationServer(context: CheckContext): Promise<readonly PortalCheck[]> {
  const { settings, credentialLocation, metadata, http, wall } = context;
  const { portal } = credentialLocation;
  const discovery = await checkDiscovery(context);
  const known = await metadata.get();
  const { endpoints } = metadata;
  const usesDeviceCode = context.usesDeviceCode();
  const addresses = contactedAddresses(settings, endpoints, usesDeviceCode);
  const connections = await checkConnections(addresses, { http, portal, wall });
  if (known.kind === 'server')
    return [
      discovery,
      checkEndpoints(endpoints, usesDeviceCode, portal),
      ...connections,
      await checkClientAt(known.server, usesDeviceCode, context),
    ];
  const unknown = 'the endpoints are not known before discovery succeeds';
  return [discovery, { name: 'endpoints', result: 'warn', detail: unknown }, ...connections, clientUnchecked(unknown)];
}

async function checkDiscovery({ settings, credentialLocation, metadata }: CheckContext): Promise<PortalCheck> {
  const name = 'discovery';
  const { issuer } = settings;
  if (issuer === null) return { name, result: 'ok', detail: 'not needed: the configuration names the endpoints' };
  const problem = await metadata.check();
  if (problem === null) return { name, result: 'ok', detail: `${issuer} describes its endpoints` };
  const advice = `check the internet connection and portals.${credentialLocation.portal}.issuer`;
  return { name, result: 'fail', detail: `${problem.replace(/^discovery: /, '')}: ${advice}` };
}

/** A device authorization request says whether a public client is known, a token request also whether its secret is. */
async function checkClientAt(
  server: AuthorizationServer,
  usesDeviceCode: boolean,
  { credentialLocation, requestDeviceCode, refresh, classify }: CheckContext,
): Promise<PortalCheck> {
  const device = usesDeviceCode ? await requestDeviceCode(server) : null;
  if (device?.kind === 'rejected' && device.clientUnknown) return clientRejected(device.detail, credentialLocation);
  if (server.token_endpoint === undefined) return clientUnchecked('the portal has no token endpoint');
  const byToken = checkClient(await refresh(server, INVALID_REFRESH_TOKEN), classify, credentialLocation);
  if (device === null || byToken.result === 'fail') return byToken;
  if (device.kind === 'link') return clientAccepted('it issues device codes to it');
  return clientUnchecked(device.detail);
}

/**
 * Checks whether the endpoints that a login and a refresh need are known.
 * @param usesDeviceCode whether a person logs in with a device code
 * @param portal its name in the configuration
 */
function checkEndpoints(
  { authorization, token, deviceAuthorization }: Endpoints,
  usesDeviceCode: boolean,
  portal: string,
): PortalCheck {
  const needed = usesDeviceCode
    ? { token_endpoint: token, device_authorization_endpoint: deviceAuthorization }
    : { token_endpoint: token, authorization_endpoint: authorization };
  const missing = Object.entries(needed).flatMap(([key, url]) => (url === null ? [`portals.${portal}.${key}`] : []));
  if (missing.length > 0)
    return {
      name: 'endpoints',
      result: 'fail',
      detail: `the portal does not name all endpoints of a login: add ${missing.join(' and ')}, or correct portals.${portal}.login`,
    };
  const found = Object.entries(needed).map(([key, url]) => `${key.replace('_endpoint', '').replace('_', ' ')} ${url}`);
  return { name: 'endpoints', result: 'ok', detail: found.join(', ') };
}

/** The addresses to which the hub itself sends requests. */
function contactedAddresses(
  { issuer, protocol }: Pick<OAuth2Settings, 'issuer' | 'protocol'>,
  { token, deviceAuthorization }: Endpoints,
  usesDeviceCode: boolean,
): string[] {
  const addresses = [issuer, token, usesDeviceCode ? deviceAuthorization : null, protocol.refresh_endpoint ?? null];
  return addresses.filter((address) => address !== null);
}
