import { request } from 'undici';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { Secret } from '../../../src/core/secret.ts';
import { FORM_MEDIA_TYPE } from '../../../src/system/http/form.ts';
import type { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { endsWithRedirect, type OAuthServer } from '../../support/oauth-servers/oauth-server.ts';

/** Keys of a portal's table, and files with secrets. */
export interface PortalTable {
  readonly keys: Readonly<Record<string, string | boolean>>;
  readonly secrets?: Readonly<Record<string, string>>;
}

/** Goes from a login link to the end of the login. */
export type Login = (url: string) => Promise<void>;

/** The file of the client secret in every portal's table. */
const SECRET_FILE = 'server.secret';

/**
 * The table of a portal for this server, with the endpoints from its metadata if it has any.
 * @param secrets the files of the client's secrets; default: its client secret
 */
export function portalTable(
  { issuer, endpoints, client }: OAuthServer,
  keys: PortalTable['keys'] = {},
  secrets: PortalTable['secrets'] = { [SECRET_FILE]: client.secret },
): PortalTable {
  const addresses = {
    ...(issuer === null && { authorization_endpoint: endpoints.authorization, token_endpoint: endpoints.token }),
    ...(issuer !== null && { issuer }),
    ...(issuer === null && endpoints.revocation !== null && { revocation_endpoint: endpoints.revocation }),
  };
  const secretFile = SECRET_FILE in secrets && { client_secret_file: SECRET_FILE };
  return { keys: { type: 'oauth2', ...addresses, client_id: client.id, ...secretFile, ...keys }, secrets };
}

/** Logs in without a browser, and brings the response to the hub if the login ends with one. */
export function loginByScript(server: OAuthServer, hub: HubProcess, name: string): Login {
  return async (url) => {
    const end = await server.loginByScript(url);
    const problem = endsWithRedirect(url) ? await bringResponse(hub, name, end) : null;
    if (problem !== null) throw new Error(`the hub did not take the response: ${problem}`);
  };
}

/**
 * Brings an authorization response to the hub, as the browser that is redirected there, or as a person who copies the
 * address from a browser that ended elsewhere.
 * @returns what the hub says if the login yielded nothing; null if it is connected, or its pairing has ended
 */
export async function bringResponse(hub: HubProcess, name: string, address: string): Promise<string | null> {
  if (!address.startsWith(hub.callbackAddress)) {
    return (await hub.ask((control) => control.pasteAddress(name, new Secret(address)))).failure;
  }
  const page = await (await request(address)).body.text();
  return page.includes('is connected') ? null : page;
}

/** Begins a pairing, logs in at its link, and waits until the connection is active. */
export async function connect(hub: HubProcess, name: string, login: Login): Promise<void> {
  const { href } = await hub.beginPairing(name);
  await login(href);
  await hub.until(name, ({ state }) => state === 'active', 30);
}

/** Requests a token as an appliance. @returns null if the hub issues none */
export async function tokenOf(hub: HubProcess, appliance: CredentialsResponse): Promise<string | null> {
  const { access_token: token } = (await hub.requestToken(appliance)).body;
  if (typeof token !== 'string') return null;
  rememberSecrets([token]);
  return token;
}

/** Whether an access token is alive at the server (RFC 7662); null if the server has no introspection. */
export async function isAlive({ endpoints, client }: OAuthServer, token: string): Promise<boolean | null> {
  if (endpoints.introspection === null) return null;
  const { statusCode, body } = await request(endpoints.introspection, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`,
      'content-type': FORM_MEDIA_TYPE,
    },
    body: new URLSearchParams({ token }).toString(),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`introspection: HTTP ${statusCode}: ${text}`);
  return JSON.parse(text).active === true;
}
