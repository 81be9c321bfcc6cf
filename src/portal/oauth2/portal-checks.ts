import type { AuthorizationServer } from 'oauth4webapi';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import type { LoginLinkOutcome } from '../../core/portals/portal.ts';
import { describeMovedEndpoint, type PortalCheck } from '../../core/portals/portal-status.ts';
import {
  type ClientProbe,
  checkClient,
  checkConnections,
  clientUnchecked,
  NO_REVOCATION,
  type ProbeAnswer,
} from '../client-check.ts';
import type { PortalRoute } from '../http.ts';
import type { ProbedAddress } from '../probe.ts';
import type { MetadataSource } from './server-metadata.ts';
import type { Endpoints, OAuth2Settings } from './settings.ts';

/** What the checks of an authorization server work with. */
interface CheckContext {
  readonly settings: OAuth2Settings;
  readonly credentialLocation: CredentialLocation;
  readonly metadata: MetadataSource;
  readonly route: PortalRoute;
  /** The hub's clock, in ms since 1970. */
  readonly wall: () => number;
  /** Whether a person logs in with a device code, as far as the endpoints are known. */
  readonly usesDeviceCode: () => boolean;
  readonly requestDeviceCode: (
    server: AuthorizationServer,
    client: Parameters<ClientProbe>[0],
  ) => Promise<LoginLinkOutcome>;
  /** Sends a made-up code or refresh token. */
  readonly requestTokens: (
    server: AuthorizationServer,
    operation: 'code' | 'refresh',
    client: Parameters<ClientProbe>[0],
  ) => Promise<ProbeAnswer>;
}

/** Checks an authorization server without a login. */
export async function checkAuthorizationServer(context: CheckContext): Promise<readonly PortalCheck[]> {
  const { settings, credentialLocation, metadata, route, wall } = context;
  const { portal } = credentialLocation;
  const discovery = await checkDiscovery(context);
  const known = await metadata.get();
  const { endpoints } = metadata;
  const usesDeviceCode = context.usesDeviceCode();
  const addresses = contactedAddresses(portal, settings, endpoints, usesDeviceCode);
  const connections = await checkConnections(addresses, { route, wall });
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
  const { moved } = metadata;
  if (moved !== null) return { name, result: 'fail', detail: describeMovedEndpoint(credentialLocation, moved) };
  if (problem === null) return { name, result: 'ok', detail: `${issuer} describes its endpoints` };
  const { detail, isOther } = problem;
  const key = `portals.${credentialLocation.portal}.issuer`;
  const advice = isOther ? `correct ${key}` : `check the internet connection and ${key}`;
  const found = `${detail.replace(/^discovery: /, '')}: ${advice}`;
  return { name, result: 'fail', detail: found, ...(isOther && { wrongKey: 'issuer' as const }) };
}

/** Asks the endpoints of a refresh and of a login. */
async function checkClientAt(
  server: AuthorizationServer,
  usesDeviceCode: boolean,
  { credentialLocation, requestDeviceCode, requestTokens }: CheckContext,
): Promise<PortalCheck> {
  if (server.token_endpoint === undefined) return clientUnchecked('the portal has no token endpoint');
  const login: ClientProbe = usesDeviceCode
    ? async (client) => deviceAnswer(await requestDeviceCode(server, client))
    : (client) => requestTokens(server, 'code', client);
  return checkClient(
    [(client) => requestTokens(server, 'refresh', client), login],
    credentialLocation,
    'token_endpoint',
  );
}

function deviceAnswer(outcome: LoginLinkOutcome): ProbeAnswer {
  if (outcome.kind === 'link') return { kind: 'granted', answer: 'a device code' };
  const { detail: answer } = outcome;
  if (outcome.kind === 'unreachable') return { kind: 'ambiguous', answer };
  const isClientRefused = outcome.kind === 'misconfigured' || (outcome.kind === 'rejected' && outcome.clientUnknown);
  return { kind: isClientRefused ? 'misconfigured' : 'rejected', answer };
}

/**
 * Checks whether the endpoints that a login and a refresh need are known.
 * @param usesDeviceCode whether a person logs in with a device code
 * @param portal its name in the configuration
 */
function checkEndpoints(
  { authorization, token, deviceAuthorization, revocation }: Endpoints,
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
  if (revocation === null) found.push(NO_REVOCATION);
  return { name: 'endpoints', result: 'ok', detail: found.join(', ') };
}

/**
 * The addresses to which the hub itself sends requests, each with its key.
 * @param portal its name in the configuration
 */
export function contactedAddresses(
  portal: string,
  { issuer }: Pick<OAuth2Settings, 'issuer'>,
  { token, deviceAuthorization }: Endpoints,
  usesDeviceCode: boolean,
): ProbedAddress[] {
  const addresses = {
    issuer,
    token_endpoint: token,
    device_authorization_endpoint: usesDeviceCode ? deviceAuthorization : null,
  };
  return Object.entries(addresses).flatMap(([key, url]) =>
    url === null ? [] : [{ key: `portals.${portal}.${key}`, url }],
  );
}
