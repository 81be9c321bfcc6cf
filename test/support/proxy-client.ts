import { Agent, request } from 'undici';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { rememberSecrets } from './logs.ts';
import type { PageResponse } from './page-visitor.ts';

/** The host of the proxy's site, as browsers request it. */
export const PROXY_HOST = 'parent.example:8123';

/** Sends requests to the ingress listener of a hub, as a reverse proxy forwards those of its users. */
export class ProxyClient implements AsyncDisposable {
  readonly basePath: string;
  readonly #origin: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  /**
   * @param basePath the path below which the proxy shows the page
   * @param headers further headers of every request
   * @param from the loopback address of the proxy
   */
  constructor(port: number, basePath: string, headers: Readonly<Record<string, string>> = {}, from = '127.0.0.1') {
    this.basePath = basePath;
    this.#origin = `http://127.0.0.1:${port}`;
    this.#headers = { host: PROXY_HOST, 'x-ingress-path': basePath, ...headers };
    this.#agent = new Agent({ localAddress: from });
  }

  /** @param path without the base path */
  get(path: string, headers: Record<string, string | undefined> = {}): Promise<PageResponse> {
    return this.send('GET', path, headers);
  }

  /** Sends a form as a browser does that shows the page in the proxy's frame. */
  async post(
    path: string,
    form: Record<string, string>,
    headers: Record<string, string | undefined> = {},
  ): Promise<PageResponse> {
    const origin = `http://${PROXY_HOST}`;
    const own = { origin, referer: `${origin}${this.basePath}/`, 'sec-fetch-site': 'same-origin' };
    const body = new URLSearchParams(form).toString();
    return this.send('POST', path, { ...own, 'content-type': FORM_MEDIA_TYPE, ...headers }, body);
  }

  /** The CSRF token of the user's forms. */
  async csrf(): Promise<string> {
    const { text } = await this.get('/appliances/add');
    const [, csrf] = /name="csrf" value="([^"]+)"/.exec(text) ?? [];
    if (csrf === undefined) throw new Error('the page has no form with a CSRF token');
    rememberSecrets([csrf]);
    return csrf;
  }

  async send(
    method: 'GET' | 'POST' | 'HEAD' | 'OPTIONS',
    path: string,
    headers: Record<string, string | undefined>,
    body?: string,
  ): Promise<PageResponse> {
    const response = await request(this.#origin + path, {
      method,
      dispatcher: this.#agent,
      headers: { ...this.#headers, ...headers },
      ...(body !== undefined && { body }),
    });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#agent.destroy();
  }
}
