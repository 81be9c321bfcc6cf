import { type AuthorizationServer, calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi';
import type { PortalOperation } from '../../clouds/odd-answers.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import type { DeviceLink, LoginLink, PolledLink } from '../../core/portals/login-link.ts';
import type {
  CodeResponse,
  LoginLinkOutcome,
  LoginLinkRequest,
  PollOutcome,
  Portal,
  RevocationOutcome,
  RevokedTokens,
} from '../../core/portals/portal.ts';
import type { InspectedPortal, MovedEndpoint, PortalCheck, PortalLogin } from '../../core/portals/portal-status.ts';
import type { NotSent, TokenOutcome } from '../../core/portals/token-outcome.ts';
import type { Random } from '../../core/random.ts';
import { Secret } from '../../core/secret.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import { MADE_UP, probeAnswer, toAcceptance, WRONG_SECRET } from '../client-check.ts';
import {
  PooledHttpClient,
  type PortalRoute,
  REVOCATION_LIMITS,
  type RequestLimits,
  TOKEN_REQUEST_LIMITS,
} from '../http.ts';
import {
  readTokenEndpointResponse,
  rejectsForGood,
  standardErrorCode,
  tokenOutcomeOf,
  toPollOutcome,
  toRevocationOutcome,
  unreachable,
} from '../responses.ts';
import { clientRefusedText, describeError, describeRedirect } from '../token-outcome.ts';
import { parseErrorCode, parseErrorDescription } from '../token-response.ts';
import { createAuthorizationLink, formatScope, parseDeviceAuthorization } from './authorization-requests.ts';
import { anotherKey } from './client-key.ts';
import { checkAuthorizationServer } from './portal-checks.ts';
import { type OutgoingRequest, RequestPacer, RequestSender } from './request-sender.ts';
import { endpointsOf, type MetadataCache, MetadataSource } from './server-metadata.ts';
import type { OAuth2Settings } from './settings.ts';

/** What the client of an authorization server works with. */
export interface OAuth2PortalOptions extends PortalRoute {
  readonly settings: OAuth2Settings;
  /** Where a person corrects the client ID and secret, for error messages. */
  readonly credentialLocation: CredentialLocation;
  /** The hub's own redirect URI, `http://<address>:<port>/callback`; null while the hub has no address. */
  readonly callbackAddress: () => string | null;
  readonly metadataCache: MetadataCache;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** A device code is polled again, so a slow answer is not awaited as long as that of a refresh; in ms. */
const POLL_LIMITS: RequestLimits = { ...TOKEN_REQUEST_LIMITS, headersTimeout: 20_000, totalTimeout: 30_000 };
/** The link survives a restart, and the configuration may have changed meanwhile. */
const OTHER_KIND_DETAIL = 'this login was begun with another configuration of the portal';
/** The hub stops, or the login has ended, before the turn of a request. */
const NOT_WAITED_FOR = unreachable({ detail: 'the request is no longer wanted' });

/** A portal that is an ordinary OAuth 2.0 authorization server (RFC 6749). */
export class OAuth2Portal implements Portal, InspectedPortal, AsyncDisposable {
  readonly #options: OAuth2PortalOptions;
  readonly #http: PooledHttpClient;
  readonly #metadata: MetadataSource;
  readonly #sender: RequestSender;
  readonly #pacer: RequestPacer;

  constructor(options: OAuth2PortalOptions) {
    const { settings, clock, timers, metadataCache } = options;
    this.#options = options;
    this.#http = new PooledHttpClient(options);
    this.#metadata = new MetadataSource(settings, this.#http, metadataCache, () => clock.now().uptime);
    this.#sender = this.#createSender(settings);
    this.#pacer = new RequestPacer(settings.minRequestInterval ?? 0, clock, timers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http[Symbol.asyncDispose]();
  }

  /** Gets the portal's metadata before it is needed. @returns why there is none; null if there is one */
  async loadMetadata(): Promise<string | null> {
    const metadata = await this.#metadata.get();
    return metadata.kind === 'unavailable' ? metadata.problem.detail : null;
  }

  get movedEndpoint(): MovedEndpoint | null {
    return this.#metadata.moved;
  }

  get redirectAddress(): string | null {
    if (this.#usesDeviceCode(this.#metadata.endpoints.deviceAuthorization)) return null;
    return this.#redirectUri;
  }

  async requestLink({ scope }: LoginLinkRequest, signal?: AbortSignal): Promise<LoginLinkOutcome> {
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable') return metadata.problem;
    const { server } = metadata;
    const requested = scope ?? this.#options.settings.defaultScope;
    return this.#usesDeviceCode(endpointsOf(server).deviceAuthorization)
      ? this.#requestDeviceCode(server, requested, { signal })
      : this.#createAuthorizationLink(server, requested);
  }

  /** Only its wait is aborted, because the portal gives the tokens of a device code only once. */
  async poll(link: PolledLink | DeviceLink, signal?: AbortSignal): Promise<PollOutcome> {
    if (link.kind !== 'device') return { kind: 'ended', portalTime: null };
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable') return metadata.problem;
    const { server } = metadata;
    await this.#turn(server, signal);
    if (signal?.aborted) return NOT_WAITED_FOR;
    const { deviceCode, verifier } = link;
    const form = {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: deviceCode.reveal(),
      ...(verifier !== null && { code_verifier: verifier.reveal() }),
    };
    const outcome = await this.#sender.send({ server, operation: 'device_token', form, limits: POLL_LIMITS });
    if (outcome.kind !== 'answer') return unreachable(outcome);
    const polled = toPollOutcome(readTokenEndpointResponse(outcome.response, 'device_token', this.#options.settings));
    if (polled.kind !== 'misconfigured') return polled;
    return { ...polled, detail: clientRefusedText(polled.detail, this.#hintContext(server, 'device_token')) };
  }

  async prepareTokenRequest(signal: AbortSignal): Promise<NotSent | null> {
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable') return { ...metadata.problem, kind: 'not_sent' };
    await this.#turn(metadata.server, signal);
    return signal.aborted ? { kind: 'not_sent', detail: NOT_WAITED_FOR.detail } : null;
  }

  async fetchTime(): Promise<number | null> {
    const { token } = this.#metadata.endpoints;
    const address = token ?? this.#options.settings.issuer;
    if (address === null) return null;
    const exchange = await this.#http.send('HEAD', new URL('/', address));
    return exchange.kind === 'answer' ? exchange.response.portalTime : null;
  }

  async exchangeCode(link: LoginLink, { code }: CodeResponse): Promise<TokenOutcome> {
    if (link.kind !== 'redirect') return { kind: 'misconfigured', detail: OTHER_KIND_DETAIL, portalTime: null };
    return this.#requestTokens('code', codeForm(code.reveal(), link.redirect, link.verifier?.reveal() ?? null));
  }

  refresh(refreshToken: Secret, maySend?: () => boolean): Promise<TokenOutcome> {
    return this.#requestTokens('refresh', refreshForm(refreshToken.reveal()), maySend);
  }

  async revoke({ refreshToken, accessToken }: RevokedTokens): Promise<RevocationOutcome> {
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable') return { kind: 'failed', detail: metadata.problem.detail };
    const { server } = metadata;
    if (server.revocation_endpoint === undefined) return { kind: 'unsupported' };
    const shape = this.#options.settings.protocol.operations?.revoke;
    const isAccessToken = refreshToken === null || shape?.token === 'access_token';
    const token = isAccessToken ? accessToken : refreshToken;
    const form = { token: token.reveal(), token_type_hint: isAccessToken ? 'access_token' : 'refresh_token' };
    const request = { server, operation: 'revoke', form, bearer: accessToken, limits: REVOCATION_LIMITS } as const;
    return toRevocationOutcome(await this.#sender.send(request));
  }

  describeLogin(): PortalLogin {
    const { login } = this.#options.settings;
    const isKnown = login !== 'auto' || this.#metadata.isKnown;
    // The next call may know more.
    if (!isKnown) void this.#metadata.get();
    if (this.#usesDeviceCode(this.#metadata.endpoints.deviceAuthorization))
      return { login: 'device', redirectUri: null };
    const method = login === 'paste' || this.#endsElsewhere ? 'paste' : 'redirect';
    return { login: isKnown ? method : null, redirectUri: this.#redirectUri };
  }

  check(wall: () => number): Promise<readonly PortalCheck[]> {
    const { settings, credentialLocation } = this.#options;
    const wrong = wrongClient(settings).then((changed) => this.#createSender(changed));
    const senderOf = (client: 'hub' | 'wrong') => (client === 'hub' ? this.#sender : wrong);
    return checkAuthorizationServer({
      settings,
      credentialLocation,
      wall,
      metadata: this.#metadata,
      route: this.#options,
      usesDeviceCode: () => this.#usesDeviceCode(this.#metadata.endpoints.deviceAuthorization),
      requestDeviceCode: async (server, client) =>
        this.#requestDeviceCode(server, settings.defaultScope, { sender: await senderOf(client) }),
      requestTokens: async (server, operation, client) => this.#probe(server, operation, await senderOf(client)),
    });
  }

  async probeClient(): ReturnType<InspectedPortal['probeClient']> {
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable' || metadata.server.token_endpoint === undefined) return 'no_answer';
    return toAcceptance(await this.#probe(metadata.server, 'refresh', this.#sender));
  }

  /** Sends a made-up refresh token or code. */
  async #probe(server: AuthorizationServer, operation: 'code' | 'refresh', sender: RequestSender) {
    const { settings, credentialLocation } = this.#options;
    await this.#turn(server, undefined, sender);
    const form = operation === 'refresh' ? refreshForm(MADE_UP) : this.#madeUpCode();
    const outcome = await sender.send({ server, operation, form, limits: POLL_LIMITS });
    return probeAnswer(outcome, operation, settings, `portals.${credentialLocation.portal}.token_endpoint`);
  }

  #madeUpCode(): OutgoingRequest['form'] {
    const redirect = this.#redirectUri ?? 'http://localhost/callback';
    return codeForm(MADE_UP, redirect, this.#options.settings.pkce ? generateRandomCodeVerifier() : null);
  }

  #createSender(settings: OAuth2Settings): RequestSender {
    const { clock, timers } = this.#options;
    return new RequestSender(settings, this.#options, { clock, timers, fetchTime: () => this.fetchTime() });
  }

  /** Waits until a request may be sent, and knows what it is made with. */
  async #turn(server: AuthorizationServer, signal?: AbortSignal, sender: RequestSender = this.#sender): Promise<void> {
    await sender.learnTime(server);
    await this.#pacer.turn(signal);
  }

  #hintContext(server: AuthorizationServer, operation: PortalOperation) {
    const { credentialLocation: location } = this.#options;
    const context = { location, key: 'token_endpoint', isLogin: operation !== 'refresh' };
    if (!this.#sender.hasEncodedBasic(server, operation)) return context;
    const otherwise = `set portals.${location.portal}.client_auth = "post": the portal may not decode them in the header`;
    return { ...context, otherwise };
  }

  /** Whether a login ends on an address that no browser in the home can open: of its own machine, or of an app. */
  get #endsElsewhere(): boolean {
    const redirect = URL.parse(this.#options.settings.redirectUri ?? '');
    if (redirect === null || redirect.href === this.#options.callbackAddress()) return false;
    return !/^https?:$/.test(redirect.protocol) || isLoopbackHost(redirect.hostname);
  }

  get #redirectUri(): string | null {
    return this.#options.settings.redirectUri ?? this.#options.callbackAddress();
  }

  #usesDeviceCode(deviceEndpoint: string | null): boolean {
    const { login } = this.#options.settings;
    return login === 'device' || (login === 'auto' && deviceEndpoint !== null);
  }

  async #createAuthorizationLink(server: AuthorizationServer, scope: string | null): Promise<LoginLinkOutcome> {
    const { settings, callbackAddress, random } = this.#options;
    const redirectUri = this.#redirectUri;
    const { authorization_endpoint: endpoint } = server;
    if (endpoint === undefined)
      return rejected(
        `the portal has no authorization endpoint: add portals.${this.#options.credentialLocation.portal}.authorization_endpoint`,
      );
    if (redirectUri === null) {
      return unreachable({ detail: 'the hub has no address on the home network that the portal could redirect to' });
    }
    const link = await createAuthorizationLink({
      endpoint,
      settings,
      redirectUri,
      scope,
      callbackAddress: callbackAddress(),
      issuer: settings.issuer === null ? null : server.issuer,
      requiresIssuer: server.authorization_response_iss_parameter_supported === true,
      randomToken: (bytes) => random.token(bytes),
    });
    return { kind: 'link', link, portalTime: null };
  }

  async #requestDeviceCode(
    server: AuthorizationServer,
    scope: string | null,
    {
      signal,
      sender = this.#sender,
    }: { readonly signal?: AbortSignal | undefined; readonly sender?: RequestSender } = {},
  ): Promise<LoginLinkOutcome> {
    const { settings, clock } = this.#options;
    if (server.device_authorization_endpoint === undefined) {
      const key = `portals.${this.#options.credentialLocation.portal}`;
      return rejected(
        `the portal has no device authorization endpoint: add ${key}.device_authorization_endpoint, or set ${key}.login = "redirect"`,
      );
    }
    const verifier = settings.protocol.device_pkce === true ? generateRandomCodeVerifier() : null;
    const form = {
      client_id: settings.clientId,
      ...(scope !== null && { scope: formatScope(scope, settings) }),
      ...(verifier !== null && {
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    };
    await this.#turn(server, signal, sender);
    if (signal?.aborted) return NOT_WAITED_FOR;
    const begun = clock.now();
    const outcome = await sender.send({ server, operation: 'device_authorization', form, limits: POLL_LIMITS });
    if (outcome.kind !== 'answer') return unreachable(outcome);
    const { status, body, retryAfter, portalTime, redirect } = outcome.response;
    const ownCode = parseErrorCode(outcome.response, settings.errorCodes);
    const error = standardErrorCode(ownCode, settings.errorCodes) ?? ownCode;
    const isPublic = settings.clientSecret === null && settings.clientKey === null;
    const key = `portals.${this.#options.credentialLocation.portal}.device_authorization_endpoint`;
    const description = parseErrorDescription(body);
    const answer = `${describeError(status, ownCode)}${description === '' ? '' : ` (${description})`}`;
    const found = redirect === undefined ? answer : describeRedirect(status, redirect, key);
    const detail = `the device authorization endpoint responded with ${found}`;
    if (rejectsForGood(status)) {
      const clientRefused = error === 'invalid_client' || error === 'unauthorized_client';
      // The same error says that the client ID is unknown, and that the secret is wrong.
      if (clientRefused && !isPublic) return { kind: 'misconfigured', detail, portalTime };
      return { kind: 'rejected', detail, portalTime, ...(clientRefused && { clientUnknown: true }) };
    }
    const link =
      status === 200 ? parseDeviceAuthorization(body, verifier === null ? null : new Secret(verifier), begun) : null;
    if (link === null) return { kind: 'unreachable', detail, retryAfter, portalTime };
    return { kind: 'link', link, portalTime };
  }

  async #requestTokens(
    operation: 'code' | 'refresh',
    form: OutgoingRequest['form'],
    maySend?: () => boolean,
  ): Promise<TokenOutcome> {
    const metadata = await this.#metadata.get();
    if (metadata.kind === 'unavailable') return { ...metadata.problem, kind: 'not_sent' };
    const { server } = metadata;
    if (server.token_endpoint === undefined) {
      const detail = `the portal has no token endpoint: add portals.${this.#options.credentialLocation.portal}.token_endpoint`;
      return { kind: 'misconfigured', detail, portalTime: null };
    }
    const limits = { ...TOKEN_REQUEST_LIMITS, ...(maySend && { maySend }) };
    const outcome = await this.#sender.send({ server, operation, form, limits });
    return tokenOutcomeOf(outcome, operation, this.#options.settings, this.#hintContext(server, operation));
  }
}

/** RFC 6749, 4.1.3. @param verifier the PKCE code verifier (RFC 7636, 4.5); null without PKCE */
function codeForm(code: string, redirect: string, verifier: string | null): OutgoingRequest['form'] {
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirect };
  return verifier === null ? form : { ...form, code_verifier: verifier };
}

/** RFC 6749, 6. */
function refreshForm(refreshToken: string): OutgoingRequest['form'] {
  return { grant_type: 'refresh_token', refresh_token: refreshToken };
}

/** The settings of a client that the portal must not accept. */
async function wrongClient(settings: OAuth2Settings): Promise<OAuth2Settings> {
  const { clientSecret, clientKey } = settings;
  if (clientSecret !== null) return { ...settings, clientSecret: new Secret(WRONG_SECRET) };
  return clientKey === null
    ? { ...settings, clientId: MADE_UP }
    : { ...settings, clientKey: await anotherKey(clientKey) };
}

function rejected(detail: string): LoginLinkOutcome {
  return { kind: 'rejected', detail, portalTime: null };
}
