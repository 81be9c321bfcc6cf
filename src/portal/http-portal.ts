import type { TokenOutcome } from '../core/grants/token-outcome.ts';
import {
  type CredentialLocation,
  describeCredentials,
  type LoginEndpoints,
  type LoginLinkOutcome,
  type PollOutcome,
  type Portal,
  type Unreachable,
} from '../core/portal.ts';
import type { Secret } from '../core/secret.ts';
import {
  PooledHttpClient,
  type PortalResponse,
  postForm,
  type RequestLimits,
  type RequestOutcome,
  TOKEN_REQUEST_LIMITS,
} from './http.ts';
import { classifyTokenResponse } from './token-outcome.ts';
import { parseAuthorizationCode, parseHelperConfiguration } from './wire.ts';

/** What the hub must know of a portal. */
export interface HttpPortalOptions {
  /** The API's origin, without a path. */
  readonly baseUrl: string;
  /** The web frontend's origin, without a path. */
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Where these two are corrected, for messages. */
  readonly credentialLocation: CredentialLocation;
  /** Further CAs to trust, PEM. Node's own are trusted too. */
  readonly ca: string[];
  readonly limits?: RequestLimits;
}

/** A link outlives a restart, and with it perhaps the configuration that it was asked for with. */
const FOREIGN_LINK_DETAIL = 'the link of this login is not on the configured origins';

/** The portal of the specification, over HTTP. Redirects are never followed: one could carry the secret elsewhere. */
export class HttpPortal implements Portal, AsyncDisposable {
  readonly #options: HttpPortalOptions;
  readonly #requests: PooledHttpClient;

  constructor(options: HttpPortalOptions) {
    this.#options = options;
    this.#requests = new PooledHttpClient(options.ca);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests[Symbol.asyncDispose]();
  }

  async requestLink(redirectUrl: string | null, signal: AbortSignal): Promise<LoginLinkOutcome> {
    const url = new URL(`/external/oauth2helper/config/${this.#options.clientId}`, this.#options.baseUrl);
    if (redirectUrl !== null) url.searchParams.set('redirect_url', redirectUrl);
    const exchange = await this.#requests.send('POST', url, signal);
    if (exchange.kind === 'no_answer') return noResponse(exchange);
    const { response: answer } = exchange;
    const { status, portalTime } = answer;
    if (status >= 300 && status < 500 && status !== 408 && status !== 429) {
      const detail = `the config endpoint answered HTTP ${status}`;
      if (status !== 404) return { kind: 'rejected', detail, portalTime };
      const unknown = `the portal does not know this client_id: check portals.${this.#options.credentialLocation.portal}.client_id (${detail})`;
      return { kind: 'rejected', detail: unknown, clientUnknown: true, portalTime };
    }
    const link = status === 200 ? parseHelperConfiguration(answer.body) : null;
    if (link === null) return unusableResponse(answer);
    const foreign = Object.values(link).find((address: string) => !this.#isOnConfiguredOrigin(address));
    if (foreign === undefined) return { kind: 'link', link: normalizeLink(link), portalTime };
    return { kind: 'foreign_origin', detail: `the portal named an address on ${originOf(foreign)}`, portalTime };
  }

  async pollCode(codeUrl: string, signal: AbortSignal): Promise<PollOutcome> {
    if (!this.#isOnConfiguredOrigin(codeUrl)) return noResponse({ detail: FOREIGN_LINK_DETAIL });
    const exchange = await this.#requests.send('GET', new URL(codeUrl), signal);
    if (exchange.kind === 'no_answer') return noResponse(exchange);
    const { response: answer } = exchange;
    const { status, portalTime } = answer;
    if (status === 404) return { kind: 'not_yet', portalTime };
    const code = status === 200 ? parseAuthorizationCode(answer.body) : null;
    return code === null ? unusableResponse(answer) : { kind: 'code', code, portalTime };
  }

  async fetchTime(): Promise<number | null> {
    const exchange = await this.#requests.send('HEAD', new URL('/', this.#options.baseUrl));
    return exchange.kind === 'answer' ? exchange.response.portalTime : null;
  }

  async exchangeCode(tokenUrl: string, code: Secret, scope: string | null): Promise<TokenOutcome> {
    if (!this.#isOnConfiguredOrigin(tokenUrl))
      return { kind: 'misconfigured', detail: FOREIGN_LINK_DETAIL, portalTime: null };
    const form = { grant_type: 'authorization_code', code: code.reveal(), ...(scope === null ? {} : { scope }) };
    return this.#requestToken(new URL(tokenUrl), form);
  }

  refresh(refreshToken: Secret): Promise<TokenOutcome> {
    const url = new URL('/sso/token', this.#options.frontendUrl);
    return this.#requestToken(url, { grant_type: 'refresh_token', refresh_token: refreshToken.reveal() });
  }

  async #requestToken(url: URL, form: Record<string, string>): Promise<TokenOutcome> {
    const { clientId, clientSecret, ca, limits = TOKEN_REQUEST_LIMITS } = this.#options;
    const credentials = { client_id: clientId, client_secret: clientSecret.reveal() };
    const exchange: RequestOutcome = await postForm(url, { ...form, ...credentials }, ca, limits);
    switch (exchange.kind) {
      case 'answer':
        return this.#withCredentialHint(classifyTokenResponse(exchange.response));
      case 'not_sent':
        return exchange;
      case 'no_answer':
        return { kind: 'ambiguous', detail: exchange.detail };
    }
  }

  /** What a person has to check is named with what the portal answered. */
  #withCredentialHint(outcome: TokenOutcome): TokenOutcome {
    if (outcome.kind !== 'misconfigured') return outcome;
    const check = describeCredentials(this.#options.credentialLocation, 'and');
    const detail = `the portal does not accept the hub's client_id and client secret (${outcome.detail}): check ${check}`;
    return { ...outcome, detail };
  }

  /** Only the two configured origins may be sent a person, a poll or the secret. */
  #isOnConfiguredOrigin(address: string): boolean {
    const origin = originOf(address);
    return origin === new URL(this.#options.baseUrl).origin || origin === new URL(this.#options.frontendUrl).origin;
  }
}

/** What RFC 3986 has characters for (2.2 and 2.3). */
const URI_PATTERN = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/;

/**
 * Links as any header, browser or QR code takes them. What is a URI stays as it is, to the letter: clients of the portal use
 * its links so. Anything else is written as a browser would read it (WHATWG URL), on the origin that was looked at.
 */
function normalizeLink({ authorizeUrl, codeUrl, tokenUrl }: LoginEndpoints): LoginEndpoints {
  const written = (address: string) => (URI_PATTERN.test(address) ? address : new URL(address).href);
  return { authorizeUrl: written(authorizeUrl), codeUrl: written(codeUrl), tokenUrl: written(tokenUrl) };
}

function originOf(address: string): string {
  const url = URL.parse(address);
  // A blob: URL has the origin of the page that made it.
  const usable = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  return usable ? url.origin : 'no usable address';
}

type UnreachableOutcome = Unreachable & Pick<PortalResponse, 'portalTime'>;

function unusableResponse({ status, retryAfter, portalTime }: PortalResponse): UnreachableOutcome {
  const detail = status === 200 ? 'an answer that is not what the specification says' : `HTTP ${status}`;
  return { kind: 'unreachable', detail, retryAfter, portalTime };
}

function noResponse(trouble: Pick<Unreachable, 'detail' | 'certificateError'>): UnreachableOutcome {
  return { ...trouble, kind: 'unreachable', retryAfter: null, portalTime: null };
}
