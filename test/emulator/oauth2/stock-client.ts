import * as oauth from 'oauth4webapi';
import type { Emulator, EmulatorOptions } from '../../../src/emulator/index.ts';
import { ALICE, FakeClock, get, post, redirectLocation, startTestEmulator } from '../portal-client.ts';

/** A client of the generic OAuth 2.0 server; its ID is no UUID. */
export const TOOL = {
  id: 'tool',
  secret: 'tool:secret with +%&',
  name: 'Tool',
  redirectUris: ['http://127.0.0.1:8480/back?keep=a%20b', 'https://tool.example/back'],
};
export const REDIRECT_URI = TOOL.redirectUris[0] ?? '';

const HTTP = { [oauth.allowInsecureRequests]: true };

/** Starts an emulator with {@link TOOL} as its first client and a clock that tests set. */
export async function startCloud(options: EmulatorOptions = {}) {
  const clock = new FakeClock();
  const emulator = await startTestEmulator({ clients: [TOOL], clock, ...options });
  return { emulator, clock, [Symbol.asyncDispose]: () => emulator.close() };
}

/** Unmodified oauth4webapi, which reads the server's metadata first. */
export class StockClient {
  readonly #emulator: Emulator;
  readonly #clock: FakeClock;
  readonly server: oauth.AuthorizationServer;
  readonly client: oauth.Client;
  readonly #authentication: oauth.ClientAuth;

  private constructor(
    { emulator, clock }: { emulator: Emulator; clock: FakeClock },
    server: oauth.AuthorizationServer,
    client: oauth.Client,
    authentication: oauth.ClientAuth,
  ) {
    this.#emulator = emulator;
    this.#clock = clock;
    this.server = server;
    this.client = client;
    this.#authentication = authentication;
  }

  static async discover(
    cloud: { emulator: Emulator; clock: FakeClock },
    authentication = oauth.ClientSecretPost(TOOL.secret),
    algorithm: 'oauth2' | 'oidc' = 'oauth2',
  ): Promise<StockClient> {
    const issuer = new URL(cloud.emulator.frontendUrl);
    const response = await oauth.discoveryRequest(issuer, { ...HTTP, algorithm });
    const server = await oauth.processDiscoveryResponse(issuer, response);
    return new StockClient(cloud, server, { client_id: cloud.emulator.clientId }, authentication);
  }

  /** The client's clock follows that of the test. */
  #skewed(): oauth.Client {
    const skew = Math.round((this.#clock.wall - Date.now()) / 1000);
    return { ...this.client, [oauth.clockSkew]: skew };
  }

  authorizationUrl(more: Record<string, string> = {}, redirectUri: string | null = REDIRECT_URI): string {
    const url = new URL(this.server.authorization_endpoint ?? '');
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: this.client.client_id,
      ...(redirectUri !== null && { redirect_uri: redirectUri }),
      ...more,
    }).toString();
    return url.href;
  }

  /** Opens the authorization URL and logs ALICE in. @returns the address to which the browser is redirected */
  async logIn(url: string): Promise<URL> {
    const page = await get(url);
    if (page.status !== 200) throw new Error(`the login page answered ${page.status}`);
    return new URL(redirectLocation(await post(url, { username: ALICE.name, password: ALICE.password })));
  }

  /** The code flow with PKCE, until the token response. */
  async exchange(landed: URL, verifier: string, redirectUri = REDIRECT_URI, state?: string) {
    const client = this.#skewed();
    const parameters = oauth.validateAuthResponse(this.server, client, landed, state ?? oauth.expectNoState);
    const response = await oauth.authorizationCodeGrantRequest(
      this.server,
      client,
      this.#authentication,
      parameters,
      redirectUri,
      verifier,
      HTTP,
    );
    return oauth.processAuthorizationCodeResponse(this.server, client, response);
  }

  /** The whole code flow with PKCE. */
  async obtainTokens(scope = 'read') {
    const verifier = oauth.generateRandomCodeVerifier();
    const challenge = await oauth.calculatePKCECodeChallenge(verifier);
    const url = this.authorizationUrl({ scope, code_challenge: challenge, code_challenge_method: 'S256', state: 's' });
    return this.exchange(await this.logIn(url), verifier, REDIRECT_URI, 's');
  }

  async refresh(refreshToken = '', additionalParameters: Record<string, string> = {}) {
    const client = this.#skewed();
    const response = await oauth.refreshTokenGrantRequest(this.server, client, this.#authentication, refreshToken, {
      ...HTTP,
      additionalParameters,
    });
    return oauth.processRefreshTokenResponse(this.server, client, response);
  }

  async beginDevice(parameters: Record<string, string> = {}) {
    const client = this.#skewed();
    const response = await oauth.deviceAuthorizationRequest(
      this.server,
      client,
      this.#authentication,
      parameters,
      HTTP,
    );
    return oauth.processDeviceAuthorizationResponse(this.server, client, response);
  }

  async poll(deviceCode: string, more: Record<string, string> = {}) {
    const client = this.#skewed();
    const response = await oauth.deviceCodeGrantRequest(this.server, client, this.#authentication, deviceCode, {
      ...HTTP,
      additionalParameters: more,
    });
    return oauth.processDeviceCodeResponse(this.server, client, response);
  }

  async revoke(token: string) {
    const client = this.#skewed();
    const response = await oauth.revocationRequest(this.server, client, this.#authentication, token, HTTP);
    return oauth.processRevocationResponse(response);
  }

  async introspect(token: string) {
    const client = this.#skewed();
    const response = await oauth.introspectionRequest(this.server, client, this.#authentication, token, HTTP);
    return oauth.processIntrospectionResponse(this.server, client, response);
  }

  whoami(token: string): Promise<Response> {
    return get(`${this.#emulator.baseUrl}/api/whoami`, { authorization: `Bearer ${token}` });
  }
}

/** The error response with which oauth4webapi rejects. */
export const refusal = (error: string, status = 400) => ({ name: 'ResponseBodyError', status, error });
