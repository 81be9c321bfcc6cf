import { expect } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { HubProcess } from '../../support/hub-process.ts';
import type { OAuthServer } from '../../support/oauth-servers/oauth-server.ts';
import { type Passage, TokenEndpointProxy } from '../../support/token-endpoint-proxy.ts';
import { connect, isAlive, loginByScript, type PortalTable, portalTable, tokenOf } from './hub-portal.ts';

/** The message of a connection whose last refresh got no response, or its beginning. */
export const LOST_ANSWER = /^An answer was lost on \d{4}-\d\d-\d\dT/;

/** A connection of a hub with one appliance, at a portal of its own, whose token requests pass a proxy. */
export class ProxiedConnection {
  readonly name: string;
  readonly proxy: TokenEndpointProxy;
  readonly #hub: HubProcess;
  readonly #server: OAuthServer;
  #appliance: CredentialsResponse | null = null;
  #logins = 0;

  private constructor(name: string, proxy: TokenEndpointProxy, hub: HubProcess, server: OAuthServer) {
    this.name = name;
    this.proxy = proxy;
    this.#hub = hub;
    this.#server = server;
  }

  /**
   * Adds a portal to the configuration of a hub that has not started.
   * @param keys of the portal, besides the usual ones
   * @param parts dispose of the proxy
   */
  static async prepare(
    name: string,
    hub: HubProcess,
    server: OAuthServer,
    given: PortalTable['keys'],
    parts: AsyncDisposableStack,
  ): Promise<ProxiedConnection> {
    const proxy = parts.use(await TokenEndpointProxy.start(server.endpoints.token));
    const { keys, secrets } = portalTable(server, { ...given, login: 'redirect', token_endpoint: proxy.url });
    await hub.addPortal(name, keys, secrets);
    return new ProxiedConnection(name, proxy, hub, server);
  }

  /** How often somebody logged in. */
  get logins(): number {
    return this.#logins;
  }

  /** Somebody logs in, for the first time or again. */
  async logIn(): Promise<void> {
    this.#appliance ??= await this.#hub.addAppliance(this.name, this.#server.scope, this.name);
    await connect(this.#hub, this.name, loginByScript(this.#server, this.#hub, this.name));
    this.#logins += 1;
  }

  /** Requests a token as the appliance. @returns null if the hub issues none */
  async issuedToken(): Promise<string | null> {
    if (this.#appliance === null) throw new Error('nobody has logged in yet');
    return tokenOf(this.#hub, this.#appliance);
  }

  status() {
    return this.#hub.connection(this.name);
  }

  /** Forces a refresh, as `latchkey refresh` does. */
  async refresh(): Promise<void> {
    await this.#hub.ask((control) => control.refresh(this.name));
  }

  /** Forces a refresh whose request passes in this way. If it is held, the hub is killed then and started again. */
  async refreshWith(passage: Passage): Promise<void> {
    const held = passage === 'pass' ? null : this.proxy.next(passage);
    const refresh = this.refresh();
    if (passage === 'hold before' || passage === 'hold after') {
      await held;
      await Promise.all([this.#hub.kill(), refresh.catch(() => undefined)]);
      await this.#hub.launch();
    } else await refresh;
  }

  /** Expects that the connection is active, by itself or by now. */
  async untilActive(): Promise<void> {
    await this.#hub.until(this.name, ({ state }) => state === 'active');
  }

  /** Expects that the appliance gets another access token than `before`, and that it is alive. */
  async expectNewToken(before: string | null): Promise<void> {
    const token = await this.issuedToken();
    expect(token).not.toBeNull();
    expect(token).not.toBe(before);
    expect(await isAlive(this.#server, token ?? '')).not.toBe(false);
  }

  /** Expects that the hub reports a lost answer and when, and still issues this token, which is alive. */
  async expectReportedLoss(token: string | null): Promise<void> {
    expect(await this.status()).toMatchObject({
      state: 'retrying',
      problem: { code: 'answer_lost', message: expect.stringMatching(LOST_ANSWER) },
    });
    expect(await this.issuedToken()).toBe(token);
    expect(await isAlive(this.#server, token ?? '')).not.toBe(false);
  }
}
