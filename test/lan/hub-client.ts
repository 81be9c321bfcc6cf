import { connect as connectPlain } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { Agent, request } from 'undici';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import type { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

export const FORM = 'application/x-www-form-urlencoded';

/** A response of the hub. */
export interface HubResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

interface RequestOptions {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS';
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

type Credentials = Pick<CredentialsResponse, 'client_id' | 'client_secret'>;

const DEVICE_CODE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';

/** A device flow that an appliance has started. */
export interface DeviceFlow {
  readonly deviceCode: string;
  readonly userCode: string;
  /** `verification_uri_complete`. */
  readonly link: string;
  /** The path and query of the link. */
  readonly path: string;
}

/** The cookie of a browser that the hub sends to the portal with this response, as a header; none if it sends none. */
export function sentBrowser({ headers }: Pick<HubResponse, 'headers'>): Record<string, string> {
  const cookies = [headers['set-cookie'] ?? []].flat().map((line) => line.split(';')[0] ?? '');
  const cookie = cookies.find((one) => one.startsWith('latchkey-sent='));
  if (cookie === undefined) return {};
  rememberSecrets([cookie.slice(cookie.indexOf('=') + 1)]);
  return { cookie };
}

/** Sends requests to both ports of a hub, and trusts only its CA. */
export class HubClient implements AsyncDisposable {
  readonly ca: string;
  readonly #hub: HubProcess;
  readonly #agent: Agent;
  #browser: Record<string, string> = {};

  private constructor(hub: HubProcess, ca: string, localAddress?: string) {
    this.#hub = hub;
    this.ca = ca;
    // Fewer connections than the hub allows a device.
    this.#agent = new Agent({ connections: 32, connect: { ca }, ...(localAddress !== undefined && { localAddress }) });
  }

  static async of(hub: HubProcess): Promise<HubClient> {
    return new HubClient(hub, (await hub.authority()).certificate);
  }

  /** Another device: its HTTPS connections come from this address of 127.0.0.0/8. */
  from(localAddress: string): HubClient {
    return new HubClient(this.#hub, this.ca, localAddress);
  }

  http(path: string, question: RequestOptions = {}): Promise<HubResponse> {
    return send(`http://127.0.0.1:${this.#hub.httpPort}${path}`, question);
  }

  https(path: string, question: RequestOptions = {}): Promise<HubResponse> {
    return send(`https://127.0.0.1:${this.#hub.httpsPort}${path}`, question, this.#agent);
  }

  /** Sends a form. @param by the appliance that authenticates, with client_secret_basic */
  post(
    path: string,
    form: Record<string, string> | string = {},
    by?: Credentials | null,
    headers: Record<string, string> = {},
  ): Promise<HubResponse> {
    const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
    const own = { 'content-type': FORM, ...(by && { authorization: basicAuthorization(by) }) };
    return this.https(path, { method: 'POST', headers: { ...own, ...headers }, body });
  }

  /** A token request with this form; `headers` replace those of a valid one. */
  token(form: Record<string, string> | string, headers: Record<string, string> = {}): Promise<HubResponse> {
    return this.post('/oauth/token', form, null, headers);
  }

  /** A token request of an appliance. */
  tokenFor(by: Credentials, form: Record<string, string> = {}): Promise<HubResponse> {
    return this.post('/oauth/token', { grant_type: 'client_credentials', ...form }, by);
  }

  /** Starts a device flow (RFC 8628, 3.1). */
  async beginDeviceFlow(by: Credentials): Promise<DeviceFlow> {
    const response = await this.post('/oauth/device_authorization', {}, by);
    if (response.status !== 200) throw new Error(`${response.status} ${response.text}`);
    const body = parseJsonBody(response);
    const [deviceCode, userCode, link] = [
      body['device_code'],
      body['user_code'],
      body['verification_uri_complete'],
    ].map(String) as [string, string, string];
    rememberSecrets([deviceCode]);
    const { pathname, search } = new URL(link);
    return { deviceCode, userCode, link, path: pathname + search };
  }

  /** Polls with a device code (RFC 8628, 3.4). */
  poll(by: Credentials, device_code: string, form: Record<string, string> = {}): Promise<HubResponse> {
    return this.post('/oauth/token', { grant_type: DEVICE_CODE_GRANT_TYPE, device_code, ...form }, by);
  }

  /** Enters a user code on the hub's page. @returns the state of the portal's login, to which the page redirects */
  async enterCode(user_code: string): Promise<string> {
    const sent = await this.post('/pair', { user_code });
    this.#browser = sentBrowser(sent);
    return new URL(String(sent.headers['location'])).searchParams.get('state') ?? '';
  }

  /**
   * Logs in, or refuses, at the portal, and delivers its redirect to the hub.
   * @param browser the header of the browser; default: that of the last {@link enterCode}
   */
  async logIn(emulator: Emulator, state: string, deny = false, browser = this.#browser): Promise<HubResponse> {
    const { pathname, search } = new URL((await emulator.login({ state, user: 'demo', deny })).location);
    return this.http(pathname + search, { headers: browser });
  }

  /** Registers an appliance (RFC 7591). @param invite an initial access token @returns the response's members */
  async register(metadata: object, invite?: string): Promise<Record<string, unknown>> {
    const authorization = invite === undefined ? {} : { authorization: `Bearer ${invite}` };
    const headers = { 'content-type': 'application/json', ...authorization };
    const response = await this.https('/oauth/register', { method: 'POST', headers, body: JSON.stringify(metadata) });
    if (response.status !== 201) throw new Error(`${response.status} ${response.text}`);
    const registered = parseJsonBody(response);
    const secrets = [registered['client_secret'], registered['registration_access_token']];
    rememberSecrets(secrets.filter((secret) => typeof secret === 'string'));
    return registered;
  }

  /** Sends bytes, and reads until the hub closes the connection or `timeout` (ms) is over. */
  rawHttp(bytes: string, timeout?: number): Promise<string> {
    return converse(connectPlain({ host: '127.0.0.1', port: this.#hub.httpPort }), 'connect', bytes, timeout);
  }

  rawHttps(bytes: string, timeout?: number): Promise<string> {
    const socket = connectSecure({ host: '127.0.0.1', port: this.#hub.httpsPort, ca: this.ca });
    return converse(socket, 'secureConnect', bytes, timeout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The header of `client_secret_basic`; these credentials need no form encoding. */
export function basicAuthorization({ client_id, client_secret }: Credentials): string {
  return `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
}

/** The body as JSON. */
export function parseJsonBody({ text }: HubResponse): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

async function send(
  url: string,
  { method = 'GET', headers = {}, body }: RequestOptions,
  agent?: Agent,
): Promise<HubResponse> {
  const response = await request(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(agent === undefined ? {} : { dispatcher: agent }),
  });
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
}

function converse(
  socket: ReturnType<typeof connectPlain>,
  ready: 'connect' | 'secureConnect',
  bytes: string,
  timeout = 10_000,
): Promise<string> {
  let received = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.once(ready, () => socket.write(bytes, 'latin1'));
  socket.setTimeout(timeout, () => socket.destroy());
  socket.on('error', (error: NodeJS.ErrnoException) => {
    received += `[${error.code}]`;
  });
  return new Promise((resolve) => socket.once('close', () => resolve(received)));
}
