import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request } from 'undici';
import type { Emulator } from '../../src/emulator/index.ts';

/** What happens to one request on its way to the portal and back. */
export type Fault =
  /** The portal sends this response and does nothing. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly body?: string;
      readonly headers?: Record<string, string>;
      /** The response is sent when this resolves. */
      readonly until?: Promise<void>;
    }
  /** These bytes are sent instead of a response, the portal does nothing, and the connection ends. */
  | { readonly kind: 'bytes'; readonly bytes: string }
  /** The connection is cut before the portal sees the request. */
  | { readonly kind: 'drop' }
  /** The portal processes the request, and its response is lost. */
  | { readonly kind: 'commit then drop' }
  /** The portal processes the request, and half of its response arrives. */
  | { readonly kind: 'truncate' }
  /** The portal processes the request, and its response arrives when this resolves. */
  | { readonly kind: 'wait'; readonly until: Promise<void> }
  /** The portal processes the request, and its response is changed by this function. */
  | { readonly kind: 'alter'; readonly with: (body: string) => string };

type Endpoint = 'config' | 'code' | 'device' | 'token';

export interface RecordedRequest {
  readonly endpoint: Endpoint;
  readonly query: URLSearchParams;
  readonly form: URLSearchParams;
}

/** A proxy to an emulator that injects faults: two origins that stand for the emulator's own. */
export class FaultyPortal implements AsyncDisposable {
  baseUrl = '';
  frontendUrl = '';
  /** Tokens are this many characters longer than the emulator's; the emulator does not see the padding. */
  tokenPadding = 0;
  /** Every request that arrived, including those that were cut. */
  readonly recordedRequests: RecordedRequest[] = [];
  readonly #emulator: Emulator;
  readonly #faults: Record<Endpoint, Fault[]> = { config: [], code: [], device: [], token: [] };
  /** The requests that the emulator is processing. */
  readonly #forwarded = new Set<Promise<unknown>>();
  #disposed = false;
  readonly #servers = [
    { server: createServer((...exchange) => this.#serve(this.#emulator.baseUrl, ...exchange)), port: 0 },
    {
      server: createServer((...exchange) => this.#serve(this.#emulator.frontendUrl, ...exchange)),
      port: 0,
    },
  ];

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
  }

  static async start(emulator: Emulator): Promise<FaultyPortal> {
    const portal = new FaultyPortal(emulator);
    await portal.reconnect();
    const [base = '', frontend = ''] = portal.#servers.map(({ port }) => `http://127.0.0.1:${port}`);
    portal.baseUrl = base;
    portal.frontendUrl = frontend;
    return portal;
  }

  /** Applies these faults to the next requests to this endpoint, one each. */
  fail(endpoint: Endpoint, ...faults: Fault[]): void {
    this.#faults[endpoint].push(...faults);
  }

  /** The response to the next request to this endpoint arrives when the returned promise is resolved. */
  hold(endpoint: Endpoint): PromiseWithResolvers<void> {
    const held = Promise.withResolvers<void>();
    this.fail(endpoint, { kind: 'wait', until: held.promise });
    return held;
  }

  /** Removes the remaining faults of this endpoint. */
  clearFaults(endpoint: Endpoint): void {
    this.#faults[endpoint].length = 0;
  }

  /** The requests to one endpoint so far. */
  requests(endpoint: Endpoint): RecordedRequest[] {
    return this.recordedRequests.filter((request) => request.endpoint === endpoint);
  }

  /** Connections are refused until {@link reconnect}. */
  async disconnect(): Promise<void> {
    for (const { server } of this.#servers) {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    }
  }

  async reconnect(): Promise<void> {
    for (const one of this.#servers) {
      await new Promise<void>((resolve) => one.server.listen(one.port, '127.0.0.1', resolve));
      const address = one.server.address();
      if (typeof address === 'object' && address !== null) one.port = address.port;
    }
  }

  /** From its end on, the emulator gets no request of this portal. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.disconnect();
    await Promise.all(this.#forwarded);
  }

  async #serve(target: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await incoming.toArray())
      .map(String)
      .join('')
      .replaceAll(/\.+(?=&|$)/g, '');
    const url = new URL(incoming.url ?? '/', target);
    const endpoint = endpointOf(url.pathname);
    this.recordedRequests.push({ endpoint, query: url.searchParams, form: new URLSearchParams(body) });
    const fault = this.#faults[endpoint].shift();
    if (fault?.kind === 'bytes') return void incoming.socket.end(fault.bytes);
    if (fault?.kind === 'drop') return void incoming.socket.destroy();
    if (fault?.kind === 'answer') {
      await fault.until;
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      return void response.end(fault.body ?? '');
    }
    if (this.#disposed) return;
    const type = incoming.headers['content-type'] ?? 'text/plain';
    const forwarding = forwardTo(url, {
      method: incoming.method ?? 'GET',
      ...(body === '' ? {} : { body, headers: { 'content-type': type } }),
    });
    this.#forwarded.add(forwarding);
    const forwarded = await forwarding;
    this.#forwarded.delete(forwarding);
    // The client no longer waits for it, and the emulator was closed meanwhile.
    if (forwarded === null) return void incoming.socket.destroy();
    const text = this.#rewrite(forwarded.text);
    if (fault?.kind === 'commit then drop') return void incoming.socket.destroy();
    if (fault?.kind === 'wait') await fault.until;
    response.writeHead(forwarded.status, forwarded.headers);
    if (fault?.kind !== 'truncate') return void response.end(fault?.kind === 'alter' ? fault.with(text) : text);
    response.write(text.slice(0, text.length / 2), () => incoming.socket.destroy());
  }

  #rewrite(text: string): string {
    const escaped = (address: string) => address.replaceAll('/', '\\/');
    return text
      .replaceAll(/("(?:access|refresh)_token":"[^"]+)/g, `$1${'.'.repeat(this.tokenPadding)}`)
      .replaceAll(escaped(this.#emulator.baseUrl), escaped(this.baseUrl))
      .replaceAll(escaped(this.#emulator.frontendUrl), escaped(this.frontendUrl));
  }
}

/** The emulator's response; null if it was closed. */
async function forwardTo(url: URL, options: NonNullable<Parameters<typeof request>[1]>) {
  try {
    const { statusCode: status, headers, body } = await request(url, options);
    const type = String(headers['content-type'] ?? 'text/plain');
    return {
      status,
      headers: { 'content-type': type, date: String(headers['date'] ?? '') },
      text: await body.text(),
    };
  } catch {
    return null;
  }
}

function endpointOf(path: string): Endpoint {
  if (path.includes('/config/')) return 'config';
  if (path.includes('/device_authorization')) return 'device';
  return path.includes('/code/get/') ? 'code' : 'token';
}
