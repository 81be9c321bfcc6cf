import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as forward } from 'undici';
import { MADE_UP } from '../../../src/portal/client-check.ts';

/** What happens to one token request on its way to the server and back. */
export type Passage =
  | 'pass'
  /** The connection is cut before the server sees the request. */
  | 'cut'
  /** The server issues tokens, and its response is lost. Requests for which it issues none pass before. */
  | 'commit then drop'
  /** The request waits, unseen by the server, until its client is gone. */
  | 'hold before'
  /** The same, but the response waits until its client is gone. */
  | 'hold after';

/** One token request that has arrived. */
interface PassedRequest {
  readonly grantType: string | null;
  /** The status of the server's response; null if the server has not seen the request. */
  status: number | null;
}

/** A reverse proxy in front of the token endpoint of an authorization server. It counts and loses requests. */
export class TokenEndpointProxy implements AsyncDisposable {
  readonly #requests: PassedRequest[] = [];
  readonly #target: string;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #passages: Exclude<Passage, 'pass'>[] = [];
  /** Called when the next request is held. */
  #held: () => void = () => undefined;

  private constructor(target: string) {
    this.#target = target;
  }

  /** @param target the URL of the token endpoint */
  static async start(target: string): Promise<TokenEndpointProxy> {
    const proxy = new TokenEndpointProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The URL that stands for the token endpoint. */
  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/token`;
  }

  /** The statuses of the server's responses to refreshes; null for those that it has not seen. */
  get refreshes(): readonly (number | null)[] {
    return this.#requests.filter(({ grantType }) => grantType === 'refresh_token').map(({ status }) => status);
  }

  /** Lets the next request pass in this way. @returns a promise that resolves when it is held, if it is to be held */
  next(passage: Exclude<Passage, 'pass'>): Promise<void> {
    this.#passages.push(passage);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = resolve;
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new Promise((resolve) => response.once('close', resolve));
    const body = Buffer.concat(await request.toArray()).toString();
    const form = new URLSearchParams(body);
    // The hub tries once whether the server accepts it as its client; that concerns no login.
    const isProbe = form.get('refresh_token') === MADE_UP;
    const passage: Passage = isProbe ? 'pass' : (this.#passages[0] ?? 'pass');
    if (passage === 'cut' || passage === 'hold before') this.#passages.shift();
    const passed: PassedRequest = { grantType: form.get('grant_type'), status: null };
    if (!isProbe) this.#requests.push(passed);
    if (passage === 'cut') return void request.socket.destroy();
    if (passage === 'hold before') {
      this.#held();
      return void (await gone);
    }
    const { authorization } = request.headers;
    const forwarded = await forward(this.#target, {
      method: 'POST',
      headers: {
        'content-type': request.headers['content-type'] ?? '',
        ...(authorization !== undefined && { authorization }),
      },
      body,
    }).catch(() => null);
    // The server was closed meanwhile.
    if (forwarded === null) return void request.socket.destroy();
    const text = await forwarded.body.text();
    passed.status = forwarded.statusCode;
    if (passage !== 'pass' && forwarded.statusCode === 200) {
      this.#passages.shift();
      if (passage === 'commit then drop') return void request.socket.destroy();
      this.#held();
      return void (await gone);
    }
    const { 'content-type': type, date } = forwarded.headers;
    if (type !== undefined) response.setHeader('content-type', type);
    if (date !== undefined) response.setHeader('date', date);
    response.statusCode = forwarded.statusCode;
    response.end(text);
  }
}
