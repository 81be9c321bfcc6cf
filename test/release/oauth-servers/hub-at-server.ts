import { request } from 'undici';
import { expect } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { FORM_MEDIA_TYPE } from '../../../src/system/http/form.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { endsWithRedirect, type OAuthServer } from './servers/oauth-server.ts';

/** Keys of a portal's table. */
export type PortalKeys = Readonly<Record<string, string | boolean>>;

/** The scope of every appliance. */
export const SCOPE = 'monitoring control';

/** The file of the client secret in every portal's table. */
const SECRET_FILE = 'server.secret';

/** A hub whose portals are at somebody else's servers. Each connection has one appliance, of the same name. */
export class HubAtServer implements AsyncDisposable {
  readonly hub: HubProcess;
  readonly #appliances = new Map<string, CredentialsResponse>();

  private constructor(hub: HubProcess) {
    this.hub = hub;
  }

  static async prepare(): Promise<HubAtServer> {
    return new HubAtServer(await HubProcess.prepare());
  }

  /**
   * Adds a portal before the hub is launched, with the endpoints from the server's metadata if it has any.
   * @param secrets the files of the client's secrets; default: its client secret
   */
  addPortal(
    name: string,
    { issuer, endpoints, client }: OAuthServer,
    keys: PortalKeys = {},
    secrets: Readonly<Record<string, string>> = { [SECRET_FILE]: client.secret },
  ): Promise<void> {
    const { authorization, token, revocation } = endpoints;
    const addresses = issuer === null ? { authorization_endpoint: authorization, token_endpoint: token } : { issuer };
    const own = {
      type: 'oauth2',
      ...addresses,
      client_id: client.id,
      ...(issuer === null && revocation !== null && { revocation_endpoint: revocation }),
      ...(SECRET_FILE in secrets && { client_secret_file: SECRET_FILE }),
    };
    return this.hub.addPortal(name, { ...own, ...keys }, secrets);
  }

  /** Adds an appliance at the portal of this name, and logs in. */
  async connect(name: string, server: OAuthServer): Promise<void> {
    if (!this.#appliances.has(name)) this.#appliances.set(name, await this.hub.addAppliance(name, SCOPE, name));
    const { href } = await this.hub.beginPairing(name);
    const end = await server.loginByScript(href);
    const problem = endsWithRedirect(href) ? await this.bringResponse(name, end) : null;
    if (problem !== null) throw new Error(`the hub did not take the response: ${problem}`);
    await this.hub.until(name, ({ state }) => state === 'active', 30);
  }

  /**
   * Brings an authorization response to the hub, as the browser that is redirected there, or as a person who copies the
   * address from a browser that ended elsewhere.
   * @returns what the hub says if the login yielded nothing; null if it is connected, or its pairing has ended
   */
  async bringResponse(name: string, address: string): Promise<string | null> {
    if (!address.startsWith(this.hub.callbackAddress)) {
      return (await this.hub.ask((control) => control.request('pasteAddress', { name, address }))).failure;
    }
    const page = await (await request(address)).body.text();
    return page.includes('is connected') ? null : page;
  }

  /** A token response of the hub to the appliance. */
  async issued(name: string) {
    const appliance = this.#appliances.get(name);
    if (appliance === undefined) throw new Error(`there is no appliance ${name}`);
    const { status, body } = await this.hub.requestToken(appliance);
    const { access_token: token, scope } = body;
    if (typeof token === 'string') rememberSecrets([token]);
    return { status, token, scope };
  }

  /** Forces a refresh, as `latchkey refresh` does. */
  refresh = (name: string) => this.hub.ask((control) => control.request('refresh', { name }));

  /** Expects a token that is not `before`, and that the server accepts. */
  async expectNewToken(name: string, server: OAuthServer, before: unknown): Promise<void> {
    const { status, token } = await this.issued(name);
    expect(status).toBe(200);
    expect(token).not.toBe(before);
    await expectAccepted(server, token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub[Symbol.asyncDispose]();
  }
}

/** Expects that the server accepts an access token, or no longer (RFC 7662), if it has introspection. */
export async function expectAccepted(server: OAuthServer, token: unknown, active = true): Promise<void> {
  const { endpoints, client } = server;
  if (endpoints.introspection === null) return;
  const { statusCode, body } = await request(endpoints.introspection, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`,
      'content-type': FORM_MEDIA_TYPE,
    },
    body: new URLSearchParams({ token: String(token) }).toString(),
  });
  const text = await body.text();
  expect(statusCode, text).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ active });
}
