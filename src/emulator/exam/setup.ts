import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { systemRandom } from '../../system/random.ts';
import type { Emulator } from '../emulator.ts';
import type { FaultOptions } from '../faults/kinds.ts';
import { OPENID_SCOPES } from '../oauth/oauth2-authorization-request.ts';
import type { ClientOptions } from '../options.ts';
import type { SettingOptions } from '../settings/settings.ts';
import { NOT_OF_THE_CLIENT } from './wire.ts';

/** The lifetime of access tokens, in seconds, on an idle machine: a client that lives by `expires_in` refreshes as often as one that waits for a 401. */
export const TOKEN_LIFETIME = 2;

/**
 * How the client gets its grant: from a refresh token, by a code or by a device code, or, in `mcp`, from nothing but the
 * API's address.
 */
export type Flow = 'refresh' | 'code' | 'device' | 'mcp';

/** How a sitting begins. */
export interface Setup {
  /** The emulator's settings. Default: access tokens that live for {@link TOKEN_LIFETIME} seconds. */
  readonly settings?: SettingOptions;
  /** How the client is registered, instead of an ID and a secret of letters. */
  readonly client?: Pick<ClientOptions, 'id' | 'secret'>;
  /** The scope that the client is asked to request. Default: none. */
  readonly scope?: string;
  /** Faults from the start. Default: none. */
  readonly faults?: readonly FaultOptions[];
  /** The situation itself is the user who logs in. Default: false, every login that the client asks for succeeds. */
  readonly ownLogin?: true;
}

/**
 * What a program knows of the server and of itself. It inherits none of these variables.
 * @param caFile over HTTPS the CA of the server, in the variables that Node, OpenSSL and Python read; otherwise null
 */
export function programEnvironment(
  { frontendUrl, clientId, clientSecret }: Emulator,
  flow: Flow,
  caFile: string | null,
): Readonly<Record<string, string | undefined>> {
  const isKnown = flow !== 'mcp';
  const hasCode = flow === 'code' || flow === 'refresh';
  const hasDevice = flow === 'device' || flow === 'refresh';
  return {
    OAUTH_ISSUER: isKnown ? frontendUrl : undefined,
    OAUTH_TOKEN_ENDPOINT: isKnown ? `${frontendUrl}/oauth2/token` : undefined,
    OAUTH_CLIENT_ID: isKnown ? clientId : undefined,
    OAUTH_CLIENT_SECRET: isKnown ? clientSecret : undefined,
    OAUTH_AUTHORIZATION_ENDPOINT: hasCode ? `${frontendUrl}/oauth2/authorize` : undefined,
    OAUTH_DEVICE_AUTHORIZATION_ENDPOINT: hasDevice ? `${frontendUrl}/oauth2/device_authorization` : undefined,
    ...(caFile !== null && { NODE_EXTRA_CA_CERTS: caFile, SSL_CERT_FILE: caFile, REQUESTS_CA_BUNDLE: caFile }),
  };
}

/**
 * A refresh token of a login by code, and no trace of it on the wire. Some clients name a scope in each refresh, which
 * can not go beyond that of the login (RFC 6749, 6).
 */
export async function mintRefreshToken(emulator: Emulator, redirectUri: string): Promise<string> {
  const { frontendUrl, clientId, clientSecret } = emulator;
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: OPENID_SCOPES,
  });
  const { location } = await emulator.login({ authorizeUrl: `${frontendUrl}/oauth2/authorize?${query}`, user: 'demo' });
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: new URL(location).searchParams.get('code') ?? '',
    redirect_uri: redirectUri,
    client_id: clientId,
    ...(clientSecret !== '' && { client_secret: clientSecret }),
  });
  const tokens: unknown = JSON.parse(await requestToken(emulator, form));
  if (typeof tokens === 'object' && tokens !== null && 'refresh_token' in tokens) return String(tokens.refresh_token);
  throw new Error('the emulator issued no refresh token');
}

/** Sends a token request that is not the client's. @returns the body of the response */
export async function requestToken({ frontendUrl, ca }: Emulator, form: URLSearchParams): Promise<string> {
  const headers = { [NOT_OF_THE_CLIENT]: '1', 'content-type': FORM_MEDIA_TYPE };
  const url = `${frontendUrl}/oauth2/token`;
  const options = { method: 'POST', headers, ...(ca !== null && { ca }) };
  const request = (ca === null ? http : https).request(url, options);
  request.end(form.toString());
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return text(response);
}

/** Below the range from which systems take ports for connections and for listeners on any port. */
const PORTS = { first: 20_000, count: 12_000 };

/** A port of 127.0.0.1 for the client's redirect URI that nobody listens on. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + systemRandom.below(PORTS.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
