import { type Dispatcher, fetch, getGlobalDispatcher } from 'undici';
import type { Emulator } from '../../src/emulator/index.ts';
import { type LoginPortal, stateParameterOf } from './hub-process.ts';
import { rememberSecrets } from './logs.ts';

/** What it needs of the emulator, which may run in another process. */
interface Portal extends Pick<Emulator, 'baseUrl' | 'frontendUrl' | 'clientId' | 'clientSecret'>, LoginPortal {
  /** What sends the requests; default: that of every request. */
  readonly dispatcher?: Dispatcher;
}

/** The portal's response to a token request of {@link OtherClient}. */
interface TokenReply {
  readonly status: number;
  readonly refreshToken: string | null;
}

/** Another program with the hub's client_id that holds a grant of its own, until the hub takes the grant over. */
export class OtherClient {
  readonly #emulator: Portal;
  #refreshToken: string;

  private constructor(emulator: Portal, refreshToken: string) {
    this.#emulator = emulator;
    this.#refreshToken = refreshToken;
  }

  /** Logs in at the portal and exchanges the code. */
  static async logIn(emulator: Portal, user = 'demo', scope = 'Monitoring'): Promise<OtherClient> {
    const { baseUrl, clientId, dispatcher = getGlobalDispatcher() } = emulator;
    const config = await fetch(`${baseUrl}/external/oauth2helper/config/${clientId}`, { dispatcher, method: 'POST' });
    const urls = (await config.json()) as { authorize_url: string; code_url: string };
    await emulator.login({ state: stateParameterOf(urls.authorize_url), user });
    const polled = await fetch(urls.code_url, { dispatcher });
    const { code } = (await polled.json()) as { code: string };
    const client = new OtherClient(emulator, '');
    const { refreshToken } = await client.#request({ grant_type: 'authorization_code', code, scope });
    client.#refreshToken = refreshToken ?? '';
    return client;
  }

  /** The refresh token that it holds. */
  get refreshToken(): string {
    return this.#refreshToken;
  }

  /** Refreshes with the token that it holds, and keeps the new one. @returns the HTTP status */
  async refresh(): Promise<number> {
    const { status, refreshToken } = await this.#request({
      grant_type: 'refresh_token',
      refresh_token: this.#refreshToken,
    });
    if (refreshToken !== null) this.#refreshToken = refreshToken;
    return status;
  }

  async #request(form: Record<string, string>): Promise<TokenReply> {
    const { clientId: client_id, clientSecret: client_secret, frontendUrl } = this.#emulator;
    const { dispatcher = getGlobalDispatcher() } = this.#emulator;
    // It decodes answers that the portal compresses.
    const response = await fetch(`${frontendUrl}/sso/token`, {
      dispatcher,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ client_id, client_secret, ...form }).toString(),
    });
    const body = (await response.json()) as Record<string, unknown>;
    const token = body['refresh_token'];
    if (typeof token === 'string') rememberSecrets([token]);
    return { status: response.status, refreshToken: typeof token === 'string' ? token : null };
  }
}
