import { type Agent, request } from 'undici';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { createAgent } from './agent.ts';
import type { HubProcess } from './hub-process.ts';
import { rememberSecrets } from './logs.ts';

/** A response of the hub's pages. */
export interface PageResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** A minimal browser: it has a cookie, follows no redirects, and sends what a test passes. */
export class PageVisitor implements AsyncDisposable {
  readonly origin: string;
  readonly #agent: Agent;
  /** The session cookie, `name=value`; null if it has none. */
  cookie: string | null = null;

  private constructor(origin: string, agent: Agent) {
    this.origin = origin;
    this.#agent = agent;
  }

  /** @param from the loopback address of its device */
  static async open(hub: HubProcess, from = '127.0.0.1'): Promise<PageVisitor> {
    const { certificate } = await hub.authority();
    return new PageVisitor(
      `https://127.0.0.1:${hub.httpsPort}`,
      createAgent({ connect: { ca: certificate }, localAddress: from }),
    );
  }

  /** Creates a signed-in visitor. */
  static async signedIn(hub: HubProcess, from?: string): Promise<PageVisitor> {
    const visitor = await PageVisitor.open(hub, from);
    await visitor.signIn((await hub.setupCode()).code);
    return visitor;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<PageResponse> {
    return this.send('GET', path, headers);
  }

  /** Sends a form as the hub's own page does. @param form a string is already encoded */
  post(
    path: string,
    form: Record<string, string> | string,
    headers: Record<string, string> = {},
  ): Promise<PageResponse> {
    const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
    const own = { origin: this.origin, 'sec-fetch-site': 'same-origin', 'content-type': FORM_MEDIA_TYPE };
    return this.send('POST', path, { ...own, ...headers }, body);
  }

  /** Signs in with a setup code; keeps the cookie. */
  async signIn(code: string, next?: string): Promise<PageResponse> {
    return this.#keep(await this.post('/sign-in', { code, ...(next !== undefined && { next }) }));
  }

  /** Opens a one-time address; keeps the cookie. */
  async follow(address: string, headers: Record<string, string> = {}): Promise<PageResponse> {
    return this.#keep(await this.get(new URL(address).pathname, headers));
  }

  /** The CSRF token of this session's forms. */
  async csrf(): Promise<string> {
    const { text } = await this.get('/');
    const [, csrf] = /name="csrf" value="([^"]+)"/.exec(text) ?? [];
    if (csrf === undefined) throw new Error('the page has no form with a CSRF token');
    rememberSecrets([csrf]);
    return csrf;
  }

  /** Whether this browser is signed in to the page. */
  async isSignedIn(): Promise<boolean> {
    return (await this.get('/')).status === 200;
  }

  async send(
    method: 'GET' | 'POST' | 'HEAD' | 'PUT' | 'DELETE',
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<PageResponse> {
    const response = await request(this.origin + path, {
      method,
      dispatcher: this.#agent,
      headers: { ...(this.cookie !== null && { cookie: this.cookie }), ...headers },
      ...(body !== undefined && { body }),
    });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  }

  #keep(seen: PageResponse): PageResponse {
    for (const line of [seen.headers['set-cookie'] ?? []].flat()) {
      this.cookie = line.split(';')[0] ?? '';
      rememberSecrets([this.cookie.split('=').slice(1).join('=')]);
    }
    return seen;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#agent.destroy();
  }
}
