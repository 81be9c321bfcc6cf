import type { CredentialLocation } from '../../core/portals/identity.ts';
import type { LoginLink, PolledLink } from '../../core/portals/login-link.ts';
import type {
  CodeResponse,
  LoginLinkOutcome,
  LoginLinkRequest,
  PollOutcome,
  Portal,
  RevocationOutcome,
  RevokedTokens,
  Unreachable,
} from '../../core/portals/portal.ts';
import type { InspectedPortal, PortalCheck, PortalLogin } from '../../core/portals/portal-status.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import type { Secret } from '../../core/secret.ts';
import {
  type ClientProbe,
  checkClient,
  checkConnections,
  clientRejected,
  isOtherEndpoint,
  MADE_UP,
  NO_REVOCATION,
  probeAnswer,
  toAcceptance,
  WRONG_SECRET,
} from '../client-check.ts';
import {
  PooledHttpClient,
  type PortalResponse,
  type PortalRoute,
  postForm,
  REVOCATION_LIMITS,
  type RequestLimits,
  type RequestOutcome,
  TOKEN_REQUEST_LIMITS,
} from '../http.ts';
import type { ProbedAddress } from '../probe.ts';
import { type ResponseRules, rejectsForGood, tokenOutcomeOf, toRevocationOutcome, unreachable } from '../responses.ts';
import { describeRedirect } from '../token-outcome.ts';
import { type LoginEndpoints, parseAuthorizationCode, parseLoginEndpoints } from './wire.ts';

/** How the hub reaches a helper portal and authenticates there. */
interface HelperPortalOptions extends PortalRoute {
  /** The API's origin, without a path. */
  readonly baseUrl: string;
  /** The web frontend's origin, without a path. */
  readonly frontendUrl: string;
  /**
   * The redirect URL for a pairing's nonce; null while the hub has no address, or if redirects are turned off. With an
   * empty nonce (`''`) it is what all of them have in common. Left out for only polling.
   */
  readonly redirectUrl?: (nonce: string) => string | null;
  /** The revocation endpoint (RFC 7009); null or left out if the portal has none. */
  readonly revocationEndpoint?: string | null;
  /**
   * How long an access token lives, in ms, if the response does not say it, or what can't be true; null or left out if
   * not configured.
   */
  readonly tokenLifetime?: number | null;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Where a person corrects the client ID and secret, for error messages. */
  readonly credentialLocation: CredentialLocation;
  readonly limits?: RequestLimits;
}

/** The responses of a helper portal are as in docs/portal.md. */
export const RULES: ResponseRules = {
  tokenLifetime: null,
  scopeSeparator: ' ',
  errorCodes: {},
  readsErrorsOfSuccess: false,
  protocol: {},
  readAnswer: null,
};

/** A pairing link survives a restart, and the configuration may have changed meanwhile. */
const FOREIGN_LINK_DETAIL = 'the link of this login is not on the configured origins';

/**
 * A portal with helper endpoints (docs/portal.md). Redirects are not followed: they could send the secret to another
 * host.
 */
export class HelperPortal implements Portal, InspectedPortal, AsyncDisposable {
  readonly #options: HelperPortalOptions;
  readonly #requests: PooledHttpClient;
  readonly #rules: ResponseRules;

  constructor(options: HelperPortalOptions) {
    this.#options = options;
    this.#requests = new PooledHttpClient(options);
    this.#rules = { ...RULES, tokenLifetime: options.tokenLifetime ?? null };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests[Symbol.asyncDispose]();
  }

  /** A helper portal has no metadata. */
  readonly movedEndpoint = null;

  get redirectAddress(): string | null {
    return this.#options.redirectUrl?.('') ?? null;
  }

  /** If the portal rejects the redirect URL, asks again without it: then only polling yields the code. */
  async requestLink({ nonce }: LoginLinkRequest, signal: AbortSignal): Promise<LoginLinkOutcome> {
    const redirectUrl = this.#options.redirectUrl?.(nonce) ?? null;
    const outcome = await this.#requestLink(redirectUrl, signal);
    if (outcome.kind !== 'rejected' || redirectUrl === null || signal.aborted) return outcome;
    const withoutRedirect = await this.#requestLink(null, signal);
    return withoutRedirect.kind === 'link' ? { ...withoutRedirect, redirectRejected: outcome.detail } : withoutRedirect;
  }

  async #requestLink(redirectUrl: string | null, signal?: AbortSignal): Promise<ConfigOutcome> {
    const redirect = redirectUrl === null ? null : this.redirectAddress;
    const url = new URL(`/external/oauth2helper/config/${this.#options.clientId}`, this.#options.baseUrl);
    if (redirectUrl !== null) url.searchParams.set('redirect_url', redirectUrl);
    const exchange = await this.#requests.send('POST', url, signal);
    if (exchange.kind === 'no_answer') return unreachable(exchange);
    const { response } = exchange;
    const { status, portalTime } = response;
    if (rejectsForGood(status)) {
      const { redirect } = response;
      const key = `portals.${this.#options.credentialLocation.portal}.base_url`;
      const found = redirect === undefined ? `HTTP ${status}` : describeRedirect(status, redirect, key);
      const detail = `the config endpoint responded with ${found}`;
      const isOther = isOtherEndpoint(status);
      if (status !== 404) return { kind: 'rejected', detail, portalTime, isOther };
      const unknown = `the portal does not know this client_id: check portals.${this.#options.credentialLocation.portal}.client_id (${detail})`;
      return { kind: 'rejected', detail: unknown, clientUnknown: true, portalTime, isOther };
    }
    const link = status === 200 ? parseLoginEndpoints(response.body) : null;
    if (link === null) return { ...unusableResponse(response), isOther: status < 300 };
    const foreign = Object.values(link).find((address: string) => !this.#isOnConfiguredOrigin(address));
    if (foreign === undefined)
      return { kind: 'link', link: { kind: 'poll', ...normalizeLink(link), redirect }, portalTime };
    return { kind: 'foreign_origin', detail: `the portal sent a URL on ${originOf(foreign)}`, portalTime };
  }

  async poll(link: LoginLink, signal: AbortSignal): Promise<PollOutcome> {
    const { codeUrl } = asPolledLink(link);
    if (!this.#isOnConfiguredOrigin(codeUrl)) return unreachable({ detail: FOREIGN_LINK_DETAIL });
    const exchange = await this.#requests.send('GET', new URL(codeUrl), signal);
    if (exchange.kind === 'no_answer') return unreachable(exchange);
    const { response } = exchange;
    const { status, portalTime } = response;
    if (status === 404) return { kind: 'not_yet', portalTime };
    const code = status === 200 ? parseAuthorizationCode(response.body) : null;
    return code === null ? unusableResponse(response) : { kind: 'code', code, portalTime };
  }

  async prepareTokenRequest(): Promise<null> {
    return null;
  }

  async fetchTime(): Promise<number | null> {
    const exchange = await this.#requests.send('HEAD', new URL('/', this.#options.baseUrl));
    return exchange.kind === 'answer' ? exchange.response.portalTime : null;
  }

  async exchangeCode(link: LoginLink, { code }: CodeResponse, scope: string | null): Promise<TokenOutcome> {
    const { tokenUrl } = asPolledLink(link);
    if (!this.#isOnConfiguredOrigin(tokenUrl))
      return { kind: 'misconfigured', detail: FOREIGN_LINK_DETAIL, portalTime: null };
    const form = { grant_type: 'authorization_code', code: code.reveal(), ...(scope === null ? {} : { scope }) };
    return this.#requestToken('code', new URL(tokenUrl), form);
  }

  refresh(refreshToken: Secret, maySend?: () => boolean): Promise<TokenOutcome> {
    const url = new URL('/sso/token', this.#options.frontendUrl);
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken.reveal() };
    return this.#requestToken('refresh', url, form, maySend);
  }

  async revoke({ refreshToken }: RevokedTokens): Promise<RevocationOutcome> {
    const { revocationEndpoint = null, limits = REVOCATION_LIMITS } = this.#options;
    if (revocationEndpoint === null || refreshToken === null) return { kind: 'unsupported' };
    const form = { token: refreshToken.reveal(), token_type_hint: 'refresh_token' };
    return toRevocationOutcome(await this.#postAsClient(new URL(revocationEndpoint), form, limits));
  }

  describeLogin(): PortalLogin {
    // Each link names its own redirect, so nobody registers one.
    return { login: this.redirectAddress === null ? 'poll' : 'redirect', redirectUri: null };
  }

  async check(wall: () => number): Promise<readonly PortalCheck[]> {
    const { credentialLocation, revocationEndpoint = null } = this.#options;
    const { portal } = credentialLocation;
    const connections = checkConnections(helperAddresses(portal, this.#options), { route: this.#options, wall });
    const link = await this.#requestLink(null);
    const probes = (['refresh', 'code'] as const).map((operation): ClientProbe => {
      return (client) => this.#probe(operation, client);
    });
    const client = await checkClient(probes, credentialLocation, 'frontend_url');
    // Any server answers 404 to what it does not know; the portal's own token endpoint says the same of the client.
    const isUnknown = link.kind === 'rejected' && link.clientUnknown === true && client.wrongKey === 'client_id';
    return [
      checkConfigEndpoint(link, isUnknown, portal, revocationEndpoint),
      ...(await connections),
      isUnknown ? clientRejected(link.detail, credentialLocation) : client,
    ];
  }

  async probeClient(): ReturnType<InspectedPortal['probeClient']> {
    return toAcceptance(await this.#probe('refresh', 'hub'));
  }

  async #probe(operation: 'refresh' | 'code', client: Parameters<ClientProbe>[0]): ReturnType<ClientProbe> {
    const { frontendUrl, clientSecret, credentialLocation, limits = TOKEN_REQUEST_LIMITS } = this.#options;
    const form: Record<string, string> =
      operation === 'refresh'
        ? { grant_type: 'refresh_token', refresh_token: MADE_UP }
        : { grant_type: 'authorization_code', code: MADE_UP };
    const secret = client === 'hub' ? clientSecret.reveal() : WRONG_SECRET;
    const outcome = await this.#postAsClient(new URL('/sso/token', frontendUrl), form, limits, secret);
    return probeAnswer(outcome, operation, this.#rules, `portals.${credentialLocation.portal}.frontend_url`);
  }

  /** Sends a form with the hub's client authentication. */
  #postAsClient(
    url: URL,
    form: Record<string, string>,
    limits: RequestLimits,
    secret = this.#options.clientSecret.reveal(),
  ): Promise<RequestOutcome> {
    const { clientId } = this.#options;
    const credentials = { client_id: clientId, client_secret: secret };
    return postForm({ url, form: new URLSearchParams({ ...form, ...credentials }) }, this.#options, limits);
  }

  async #requestToken(
    operation: 'code' | 'refresh',
    url: URL,
    form: Record<string, string>,
    maySend?: () => boolean,
  ): Promise<TokenOutcome> {
    const limits = this.#options.limits ?? TOKEN_REQUEST_LIMITS;
    const outcome = await this.#postAsClient(url, form, { ...limits, ...(maySend && { maySend }) });
    const { credentialLocation: location } = this.#options;
    const hint = { location, key: 'frontend_url', isLogin: operation === 'code' };
    return tokenOutcomeOf(outcome, operation, this.#rules, hint);
  }

  /** People, polls and the secret are only sent to the two configured origins. */
  #isOnConfiguredOrigin(address: string): boolean {
    const origin = originOf(address);
    return origin === new URL(this.#options.baseUrl).origin || origin === new URL(this.#options.frontendUrl).origin;
  }
}

/** The addresses to which the hub sends requests, each with its key. @param portal its name in the configuration */
export function helperAddresses(
  portal: string,
  { baseUrl, frontendUrl }: Pick<HelperPortalOptions, 'baseUrl' | 'frontendUrl'>,
): ProbedAddress[] {
  return [
    { key: `portals.${portal}.base_url`, url: baseUrl },
    { key: `portals.${portal}.frontend_url`, url: frontendUrl },
  ];
}

/** What a response of the config endpoint says about the configured origins. @param isUnknown whether the client is */
function checkConfigEndpoint(
  outcome: ConfigOutcome,
  isUnknown: boolean,
  portal: string,
  revocation: string | null,
): PortalCheck {
  const keys = `portals.${portal}.base_url and portals.${portal}.frontend_url`;
  const without = revocation === null ? `, ${NO_REVOCATION}` : '';
  if (outcome.kind === 'link')
    return {
      name: 'endpoints',
      result: 'ok',
      detail: `the config endpoint returns the endpoints of a login${without}`,
    };
  if (isUnknown) return { name: 'endpoints', result: 'ok', detail: 'the config endpoint responds' };
  const failed = { name: 'endpoints', result: 'fail', detail: `${outcome.detail}: check ${keys}` } as const;
  if (outcome.kind === 'foreign_origin') return { ...failed, wrongKey: 'frontend_url' };
  return outcome.isOther ? { ...failed, wrongKey: 'base_url' } : failed;
}

/** `isOther`: something else than the config endpoint has answered. */
type ConfigOutcome = LoginLinkOutcome & { readonly isOther?: boolean };

/** Reserved and unreserved characters (RFC 3986, 2.2 and 2.3). */
const URI_PATTERN = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/;

/**
 * Makes the links valid in headers, browsers and QR codes. A valid URI stays unchanged, because the portal may compare
 * it. Anything else is serialized as a browser parses it (WHATWG URL), so that its origin is the one that was checked.
 */
function normalizeLink({ authorizeUrl, codeUrl, tokenUrl }: LoginEndpoints): LoginEndpoints {
  const normalize = (address: string) => (URI_PATTERN.test(address) ? address : new URL(address).href);
  return { authorizeUrl: normalize(authorizeUrl), codeUrl: normalize(codeUrl), tokenUrl: normalize(tokenUrl) };
}

function originOf(address: string): string {
  const url = URL.parse(address);
  // A blob: URL has the origin of the page that created it.
  const usable = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  return usable ? url.origin : 'no usable address';
}

/** A link of another kind: the portal's configuration has changed, so its addresses are not on the configured origins. */
const OTHER_KIND = { codeUrl: '', tokenUrl: '' } as const;

function asPolledLink(link: LoginLink): Pick<PolledLink, 'codeUrl' | 'tokenUrl'> {
  return link.kind === 'poll' ? link : OTHER_KIND;
}

function unusableResponse({
  status,
  retryAfter,
  portalTime,
}: PortalResponse): Unreachable & Pick<PortalResponse, 'portalTime'> {
  const detail = status === 200 ? 'a response that does not match docs/portal.md' : `HTTP ${status}`;
  return { kind: 'unreachable', detail, retryAfter, portalTime };
}
