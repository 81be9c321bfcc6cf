import { connect as connectPlain } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { Agent, request } from 'undici';
import type { CredentialsResponse } from '../../src/control/messages.ts';
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

/** Sends requests to both ports of a hub, and trusts only its CA. */
export class HubClient implements AsyncDisposable {
  readonly ca: string;
  readonly #hub: HubProcess;
  readonly #agent: Agent;

  private constructor(hub: HubProcess, ca: string, localAddress?: string) {
    this.#hub = hub;
    this.ca = ca;
    this.#agent = new Agent({ connect: { ca }, ...(localAddress === undefined ? {} : { localAddress }) });
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

  /** A token request with this form; `body` and `headers` replace those of a valid one. */
  token(form: Record<string, string> | string, headers: Record<string, string> = {}): Promise<HubResponse> {
    const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
    return this.https('/oauth/token', { method: 'POST', headers: { 'content-type': FORM, ...headers }, body });
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
export function basicAuthorization({
  client_id,
  client_secret,
}: Pick<CredentialsResponse, 'client_id' | 'client_secret'>): string {
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
