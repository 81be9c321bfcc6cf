import { setTimeout as sleep } from 'node:timers/promises';
import * as oauth from 'oauth4webapi';
import type { OAuthServer } from '../../support/oauth-servers/oauth-server.ts';

/** The servers use loopback without TLS. */
const HTTP = { [oauth.allowInsecureRequests]: true };

/** A registered client, and what it knows of the server. */
export interface RelyingParty {
  readonly server: oauth.AuthorizationServer;
  readonly client: oauth.Client;
  readonly authentication: oauth.ClientAuth;
  readonly redirectUri: string;
}

/** The servers ask for five seconds between polls. */
const MAX_POLLS = 20;

/** What the server publishes, or its endpoints if it publishes nothing. */
async function readMetadata({ issuer, endpoints }: OAuthServer): Promise<oauth.AuthorizationServer> {
  if (issuer !== null) {
    const url = new URL(issuer);
    return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, HTTP));
  }
  return {
    issuer: new URL(endpoints.token).origin,
    authorization_endpoint: endpoints.authorization,
    token_endpoint: endpoints.token,
    ...(endpoints.deviceAuthorization !== null && { device_authorization_endpoint: endpoints.deviceAuthorization }),
    ...(endpoints.revocation !== null && { revocation_endpoint: endpoints.revocation }),
  };
}

/** The registered client, which authenticates with HTTP Basic unless told otherwise. */
export async function relyingPartyOf(
  server: OAuthServer,
  redirectUri: string,
  { id, authentication }: { readonly id?: string; readonly authentication?: oauth.ClientAuth } = {},
): Promise<RelyingParty> {
  return {
    server: await readMetadata(server),
    client: { client_id: id ?? server.client.id },
    authentication: authentication ?? oauth.ClientSecretBasic(server.client.secret),
    redirectUri,
  };
}

/**
 * HTTP Basic for a server that does not decode the id and the secret, against RFC 6749, 2.3.1. oauth4webapi encodes even
 * hyphens.
 */
export function unencodedBasic({ client: { id, secret } }: OAuthServer): oauth.ClientAuth {
  return (_server, _client, _body, headers) => headers.set('authorization', `Basic ${btoa(`${id}:${secret}`)}`);
}

/**
 * Authorization code with PKCE, and `iss` if the server announces it.
 * @param login goes from the authorization URL to the redirect, which it returns
 */
export async function loginWithCode(
  party: RelyingParty,
  scope: string,
  login: (url: string) => Promise<string>,
): Promise<oauth.TokenEndpointResponse> {
  const response = await requestTokens(party, scope, login);
  return oauth.processAuthorizationCodeResponse(party.server, party.client, response);
}

/** Does the same. @returns the token endpoint's response, which no library has read */
export async function requestTokens(
  { server, client, authentication, redirectUri }: RelyingParty,
  scope: string,
  login: (url: string) => Promise<string>,
): Promise<Response> {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(server.authorization_endpoint ?? '');
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString();
  const callback = oauth.validateAuthResponse(server, client, new URL(await login(url.href)), state);
  return oauth.authorizationCodeGrantRequest(server, client, authentication, callback, redirectUri, verifier, HTTP);
}

/** Device flow. @param login goes from the verification URL to the last page */
export async function loginWithDevice(
  { server, client, authentication }: RelyingParty,
  scope: string,
  login: (url: string) => Promise<unknown>,
): Promise<oauth.TokenEndpointResponse> {
  const start = await oauth.deviceAuthorizationRequest(server, client, authentication, { scope }, HTTP);
  const device = await oauth.processDeviceAuthorizationResponse(server, client, start);
  const poll = async () =>
    oauth.processDeviceCodeResponse(
      server,
      client,
      await oauth.deviceCodeGrantRequest(server, client, authentication, device.device_code, HTTP),
    );
  const early = await errorOf(poll());
  if (early !== 'authorization_pending') throw new Error(`before the login a poll got ${early}`);
  await login(device.verification_uri_complete ?? '');
  for (let polls = 1; ; polls++) {
    try {
      return await poll();
    } catch (error) {
      const isTooSoon = error instanceof oauth.ResponseBodyError && error.error === 'slow_down';
      if (!isTooSoon || polls === MAX_POLLS) throw error;
      await sleep(1000);
    }
  }
}

export async function refresh(
  party: RelyingParty,
  refreshToken: string | undefined,
): Promise<oauth.TokenEndpointResponse> {
  const response = await requestRefresh(party, refreshToken);
  return oauth.processRefreshTokenResponse(party.server, party.client, response);
}

/** @returns the token endpoint's response, which no library has read */
export function requestRefresh(
  { server, client, authentication }: RelyingParty,
  refreshToken: string | undefined,
): Promise<Response> {
  return oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken ?? '', HTTP);
}

export async function revoke(
  { server, client, authentication }: RelyingParty,
  token: string | undefined,
): Promise<void> {
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, authentication, token ?? '', HTTP),
  );
}

/** The `error` of RFC 6749, 5.2 that a request ends with; the status if the response has none. */
export async function errorOf(request: Promise<unknown>): Promise<string> {
  try {
    await request;
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError) return error.error;
    if (error instanceof Error && error.cause instanceof Response) return `HTTP ${error.cause.status}`;
    throw error;
  }
  return 'none';
}
