import {
  type AuthorizationServer,
  type ClientAuth,
  ClientSecretPost,
  modifyAssertion,
  None,
  PrivateKeyJwt,
} from 'oauth4webapi';
import type { CloudOperation } from '../../clouds/cloud.ts';
import type { PortalOperation } from '../../clouds/odd-answers.ts';
import { type Clock, type ConfirmedTime, confirmedTimeAt, type Timers } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { userAgent } from '../../system/version.ts';
import { type PortalRoute, postForm, type RequestLimits, type RequestOutcome } from '../http.ts';
import type { ClientKey } from './client-key.ts';
import type { ClientAuthMethod, OAuth2Settings } from './settings.ts';

/** What one request is about. */
export interface OutgoingRequest {
  readonly server: AuthorizationServer;
  readonly operation: PortalOperation;
  /** The parameters, without the client authentication. */
  readonly form: Readonly<Record<string, string>>;
  /** The access token that authenticates the request, where a cloud wants that in place of the client. */
  readonly bearer?: Secret;
  readonly limits: RequestLimits;
}

/** The endpoint of each kind of request, as metadata and configuration name it. */
const ENDPOINTS = {
  code: 'token_endpoint',
  refresh: 'token_endpoint',
  device_token: 'token_endpoint',
  device_authorization: 'device_authorization_endpoint',
  revoke: 'revocation_endpoint',
} as const;

/** What requests are sent with. */
interface SenderContext {
  readonly clock: Clock;
  readonly timers: Timers;
  /** The portal's clock, from any response; null if none came. */
  readonly fetchTime: () => Promise<number | null>;
}

/** How long a request that will be signed waits for the portal's time, in ms. */
const TIME_TIMEOUT = 5000;
/** How long an assertion is valid, in seconds. */
const ASSERTION_LIFETIME = 60;

/**
 * Sends requests to an authorization server. The library authenticates the client; this project's HTTP client sends the
 * requests, so that the hub knows whether one has left it; and the protocol part of a preset changes what a cloud wants
 * otherwise.
 */
export class RequestSender {
  readonly #settings: OAuth2Settings;
  readonly #route: PortalRoute;
  readonly #context: SenderContext;
  /** The portal's clock: it decides whether a signed assertion is valid. */
  #portalClock: ConfirmedTime | null = null;

  constructor(settings: OAuth2Settings, route: PortalRoute, context: SenderContext) {
    this.#settings = settings;
    this.#route = route;
    this.#context = context;
  }

  async send({ server, operation, form, bearer, limits }: OutgoingRequest): Promise<RequestOutcome> {
    const { clientId, protocol } = this.#settings;
    const endpoint = server[ENDPOINTS[operation]];
    if (endpoint === undefined) return { kind: 'not_sent', detail: `the portal has no ${ENDPOINTS[operation]}` };
    const parameters = new URLSearchParams(form);
    const headers = new Headers();
    try {
      const authenticate = this.#authentication(server, protocol.operations?.[operation] ?? {}, bearer);
      await authenticate(server, { client_id: clientId }, parameters, headers);
    } catch (error) {
      return { kind: 'not_sent', detail: `the hub can't make this request: ${messageOf(error)}` };
    }
    const outcome = await this.#post(new URL(endpoint), parameters, Object.fromEntries(headers), operation, limits);
    if (outcome.kind === 'answer') this.#recordTime(outcome.response.portalTime);
    return outcome;
  }

  #recordTime(wall: number | null): void {
    if (wall !== null) this.#portalClock = { wall, at: this.#context.clock.now() };
  }

  /** Asks the portal for its time if requests are signed, and no response has said it yet. */
  async learnTime(server: AuthorizationServer): Promise<void> {
    const { timers, fetchTime } = this.#context;
    if (this.#portalClock !== null || this.#defaultMethod(server) !== 'private_key_jwt') return;
    const learning = fetchTime().then((time) => this.#recordTime(time));
    await withTimeout(learning, TIME_TIMEOUT, timers);
  }

  #post(
    url: URL,
    form: URLSearchParams,
    headers: Readonly<Record<string, string>>,
    operation: PortalOperation,
    limits: RequestLimits,
  ): Promise<RequestOutcome> {
    const { protocol, tokenParams, headers: configured, clientId } = this.#settings;
    const shape = protocol.operations?.[operation] ?? {};
    const isTokenRequest = operation !== 'revoke' && operation !== 'device_authorization';
    if (shape.grant_type !== undefined) form.set('grant_type', shape.grant_type);
    for (const [name, value] of Object.entries(shape.params ?? {})) form.set(name, value);
    if (isTokenRequest) for (const [name, value] of Object.entries(tokenParams)) form.set(name, value);
    if (shape.client_id === true) form.set('client_id', clientId);
    if (shape.client_id === false) form.delete('client_id');
    const sent = {
      ...headers,
      'user-agent': userAgent(),
      ...(operation === 'revoke' ? {} : revealAll(configured)),
    };
    if (shape.placement !== 'query') return postForm({ url, form, headers: sent }, this.#route, limits);
    for (const [name, value] of form) url.searchParams.append(name, value);
    return postForm({ url, form: new URLSearchParams(), headers: sent }, this.#route, limits);
  }

  /** Whether a request authenticates with Basic, and its credentials have characters that are encoded there. */
  hasEncodedBasic(server: AuthorizationServer, operation: PortalOperation): boolean {
    const { protocol, clientId, clientSecret } = this.#settings;
    const method = protocol.operations?.[operation]?.client_auth ?? this.#defaultMethod(server);
    const credentials = `${clientId}${clientSecret?.reveal() ?? ''}`;
    return method === 'basic' && formEncode(credentials) !== credentials;
  }

  #authentication(server: AuthorizationServer, { client_auth }: CloudOperation, bearer?: Secret): ClientAuth {
    const { clientSecret, clientKey } = this.#settings;
    const secret = clientSecret?.reveal();
    const method = client_auth ?? this.#defaultMethod(server);
    switch (method) {
      case 'bearer':
        return (_server, _client, _body, headers) => headers.set('authorization', `Bearer ${bearer?.reveal() ?? ''}`);
      case 'private_key_jwt':
        return clientKey === null ? None() : this.#assertion(server, clientKey);
      case 'basic':
        // A secret in the form or in the header is never empty: that of a public client is left out.
        return secret === undefined ? None() : basicAuthentication(secret);
      case 'post':
        return secret === undefined ? None() : ClientSecretPost(secret);
      default:
        return None();
    }
  }

  /**
   * A signed assertion. Its audience is the issuer (draft-ietf-oauth-rfc7523bis), or the token endpoint if no issuer is
   * configured (RFC 7523, 3).
   * Its times are the portal's, or the hub's if the portal does not say the time.
   */
  #assertion(server: AuthorizationServer, clientKey: ClientKey): ClientAuth {
    const now = this.#context.clock.now();
    const time = confirmedTimeAt(this.#portalClock, now) ?? now.wall;
    const isIssuerKnown = this.#settings.issuer !== null;
    return PrivateKeyJwt(clientKey, {
      [modifyAssertion]: (header, payload) => {
        Object.assign(header, clientKey.thumbprints);
        const iat = Math.floor(time / 1000);
        Object.assign(payload, { iat, nbf: iat, exp: iat + ASSERTION_LIFETIME });
        if (!isIssuerKnown && server.token_endpoint !== undefined) payload['aud'] = server.token_endpoint;
      },
    });
  }

  /** What the configuration says, else what the metadata offers, else Basic if there is a secret (RFC 6749, 2.3.1). */
  #defaultMethod(server: AuthorizationServer): ClientAuthMethod {
    const { clientAuth, clientSecret, clientKey } = this.#settings;
    if (clientAuth !== null) return clientAuth;
    if (clientKey !== null) return 'private_key_jwt';
    if (clientSecret === null) return 'none';
    const offered = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return !offered.includes('client_secret_basic') && offered.includes('client_secret_post') ? 'post' : 'basic';
  }
}

/**
 * HTTP Basic (RFC 6749, 2.3.1), form-encoded as browsers do it. The library also encodes "-", "." and "_", which most
 * client IDs have, and servers that do not decode the credentials refuse those (docs/decisions/oauth2-library.md).
 */
function basicAuthentication(secret: string): ClientAuth {
  return (_server, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`);
  };
}

function formEncode(value: string): string {
  return new URLSearchParams({ value }).toString().slice('value='.length);
}

function revealAll(headers: Readonly<Record<string, Secret>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.reveal()]));
}

/** Keeps a shortest time between the requests to a token endpoint. */
export class RequestPacer {
  readonly #interval: number;
  readonly #clock: Clock;
  readonly #timers: Timers;
  /** The earliest time of the next request, on the boot clock in ms. */
  #next = Number.NEGATIVE_INFINITY;

  /** @param interval in ms; 0 for none */
  constructor(interval: number, clock: Clock, timers: Timers) {
    this.#interval = interval;
    this.#clock = clock;
    this.#timers = timers;
  }

  /**
   * Waits until the next request may be sent, or until the signal is aborted. Callers go on in the order in which they
   * came.
   */
  async turn(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now().uptime;
    const at = Math.max(now, this.#next);
    this.#next = at + this.#interval;
    if (at > now) await this.#timers.sleep(at - now, signal);
  }
}
