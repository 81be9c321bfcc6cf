import type { TokenOutcome } from '../core/grants/token-outcome.ts';
import {
  type CredentialLocation,
  credentialsInWords,
  type LinkOutcome,
  type PollOutcome,
  type Portal,
  type PortalLink,
  type Unreachable,
} from '../core/portal.ts';
import type { Secret } from '../core/secret.ts';
import { type Exchange, LIMITS, type Limits, type PortalAnswer, postForm, RepeatableRequests } from './http.ts';
import { classify } from './outcome.ts';
import { parseCode, parseLink } from './wire.ts';

/** What the hub must know of a portal. */
export interface PortalSettings {
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
  readonly limits?: Limits;
}

/** A link outlives a restart, and with it perhaps the configuration that it was asked for with. */
const FOREIGN_LINK = 'the link of this login is not on the configured origins';

/** The portal of the specification, over HTTP. Redirects are never followed: one could carry the secret elsewhere. */
export class HttpPortal implements Portal, AsyncDisposable {
  readonly #settings: PortalSettings;
  readonly #requests: RepeatableRequests;

  constructor(settings: PortalSettings) {
    this.#settings = settings;
    this.#requests = new RepeatableRequests(settings.ca);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests[Symbol.asyncDispose]();
  }

  async requestLink(redirectUrl: string | null, signal: AbortSignal): Promise<LinkOutcome> {
    const url = new URL(`/external/oauth2helper/config/${this.#settings.clientId}`, this.#settings.baseUrl);
    if (redirectUrl !== null) url.searchParams.set('redirect_url', redirectUrl);
    const exchange = await this.#requests.send('POST', url, signal);
    if (exchange.kind === 'no_answer') return noAnswer(exchange);
    const { answer } = exchange;
    const { status, portalTime } = answer;
    if (status >= 300 && status < 500 && status !== 408 && status !== 429) {
      const detail = `the config endpoint answered HTTP ${status}`;
      if (status !== 404) return { kind: 'rejected', detail, portalTime };
      const unknown = `the portal does not know this client_id: check portals.${this.#settings.credentialLocation.portal}.client_id (${detail})`;
      return { kind: 'rejected', detail: unknown, clientUnknown: true, portalTime };
    }
    const link = status === 200 ? parseLink(answer.body) : null;
    if (link === null) return unreachable(answer);
    const foreign = Object.values(link).find((address: string) => !this.#isOurs(address));
    if (foreign === undefined) return { kind: 'link', link: inAscii(link), portalTime };
    return { kind: 'foreign_origin', detail: `the portal named an address on ${originOf(foreign)}`, portalTime };
  }

  async pollCode(codeUrl: string, signal: AbortSignal): Promise<PollOutcome> {
    if (!this.#isOurs(codeUrl)) return noAnswer({ detail: FOREIGN_LINK });
    const exchange = await this.#requests.send('GET', new URL(codeUrl), signal);
    if (exchange.kind === 'no_answer') return noAnswer(exchange);
    const { answer } = exchange;
    const { status, portalTime } = answer;
    if (status === 404) return { kind: 'not_yet', portalTime };
    const code = status === 200 ? parseCode(answer.body) : null;
    return code === null ? unreachable(answer) : { kind: 'code', code, portalTime };
  }

  async askTime(): Promise<number | null> {
    const exchange = await this.#requests.send('HEAD', new URL('/', this.#settings.baseUrl));
    return exchange.kind === 'answer' ? exchange.answer.portalTime : null;
  }

  async exchange(tokenUrl: string, code: Secret, scope: string | null): Promise<TokenOutcome> {
    if (!this.#isOurs(tokenUrl)) return { kind: 'misconfigured', detail: FOREIGN_LINK, portalTime: null };
    const form = { grant_type: 'authorization_code', code: code.reveal(), ...(scope === null ? {} : { scope }) };
    return this.#token(new URL(tokenUrl), form);
  }

  refresh(refreshToken: Secret): Promise<TokenOutcome> {
    const url = new URL('/sso/token', this.#settings.frontendUrl);
    return this.#token(url, { grant_type: 'refresh_token', refresh_token: refreshToken.reveal() });
  }

  async #token(url: URL, form: Record<string, string>): Promise<TokenOutcome> {
    const { clientId, clientSecret, ca, limits = LIMITS } = this.#settings;
    const credentials = { client_id: clientId, client_secret: clientSecret.reveal() };
    const exchange: Exchange = await postForm(url, { ...form, ...credentials }, ca, limits);
    switch (exchange.kind) {
      case 'answer':
        return this.#named(classify(exchange.answer));
      case 'not_sent':
        return exchange;
      case 'no_answer':
        return { kind: 'ambiguous', detail: exchange.detail };
    }
  }

  /** What a person has to check is named with what the portal answered. */
  #named(outcome: TokenOutcome): TokenOutcome {
    if (outcome.kind !== 'misconfigured') return outcome;
    const check = credentialsInWords(this.#settings.credentialLocation, 'and');
    const detail = `the portal does not accept the hub's client_id and client secret (${outcome.detail}): check ${check}`;
    return { ...outcome, detail };
  }

  /** Only the two configured origins may be sent a person, a poll or the secret. */
  #isOurs(address: string): boolean {
    const origin = originOf(address);
    return origin === new URL(this.#settings.baseUrl).origin || origin === new URL(this.#settings.frontendUrl).origin;
  }
}

/** What RFC 3986 has characters for (2.2 and 2.3). */
const URI = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/;

/**
 * Links as any header, browser or QR code takes them. What is a URI stays as it is, to the letter: clients of the portal use
 * its links so. Anything else is written as a browser would read it (WHATWG URL), on the origin that was looked at.
 */
function inAscii({ authorizeUrl, codeUrl, tokenUrl }: PortalLink): PortalLink {
  const written = (address: string) => (URI.test(address) ? address : new URL(address).href);
  return { authorizeUrl: written(authorizeUrl), codeUrl: written(codeUrl), tokenUrl: written(tokenUrl) };
}

function originOf(address: string): string {
  const url = URL.parse(address);
  // A blob: URL has the origin of the page that made it.
  const usable = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  return usable ? url.origin : 'no usable address';
}

type NoUse = Unreachable & Pick<PortalAnswer, 'portalTime'>;

function unreachable({ status, retryAfter, portalTime }: PortalAnswer): NoUse {
  const detail = status === 200 ? 'an answer that is not what the specification says' : `HTTP ${status}`;
  return { kind: 'unreachable', detail, retryAfter, portalTime };
}

function noAnswer(trouble: Pick<Unreachable, 'detail' | 'certificate'>): NoUse {
  return { ...trouble, kind: 'unreachable', retryAfter: null, portalTime: null };
}
