import {
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretPost,
  customFetch,
  type HttpRequestOptions,
  modifyAssertion,
  None,
  PrivateKeyJwt,
} from 'oauth4webapi';
import { type Clock, type ConfirmedTime, confirmedTimeAt, type Timers } from '../../core/clock.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { userAgent } from '../../system/version.ts';
import { type PortalRoute, postForm, type RequestLimits, type RequestOutcome } from '../http.ts';
import type { PresetOperation } from '../presets/preset.ts';
import type { ClientKey } from './client-key.ts';
import type { PortalOperation } from './responses.ts';
import type { ClientAuthMethod, OAuth2Settings } from './settings.ts';

/** Sends a request with the library: with this client, this client authentication and these options. */
export type LibraryRequest = (
  client: Client,
  authentication: ClientAuth,
  options: HttpRequestOptions<'POST', URLSearchParams>,
) => Promise<Response>;

/** What one request is about. */
export interface OutgoingRequest {
  readonly server: AuthorizationServer;
  readonly operation: PortalOperation;
  /** The access token that authenticates the request, where a cloud wants that in place of the client. */
  readonly bearer?: Secret;
  readonly limits: RequestLimits;
}

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

/** What the library gets as the response: the hub reads the real one itself (docs/decisions/oauth2-library.md). */
const UNREAD_RESPONSE = () => new Response(null, { status: 200 });

/**
 * Sends requests to an authorization server. The library makes them; this project's HTTP client sends them, so that the
 * hub knows whether a request has left it; and the protocol part of a preset changes what a cloud wants otherwise.
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

  async send({ server, operation, bearer, limits }: OutgoingRequest, request: LibraryRequest): Promise<RequestOutcome> {
    const { clientId, protocol } = this.#settings;
    const shape = protocol.operations?.[operation] ?? {};
    const outcomes: RequestOutcome[] = [];
    const client: Client = { client_id: clientId };
    await request(client, this.#authentication(server, shape, bearer), {
      [allowInsecureRequests]: true,
      [customFetch]: async (address, { body, headers }) => {
        outcomes.push(await this.#post(new URL(address), new URLSearchParams(body), headers, operation, limits));
        return UNREAD_RESPONSE();
      },
    }).catch((error: unknown) => {
      // Without an outcome nothing was sent: the library can't make this request.
      if (outcomes.length === 0) throw error;
    });
    const outcome = outcomes[0] ?? { kind: 'not_sent', detail: 'the request was not made' };
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
    address: URL,
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
    const url =
      operation === 'refresh' && protocol.refresh_endpoint !== undefined ? new URL(protocol.refresh_endpoint) : address;
    const sent = {
      ...headers,
      'user-agent': userAgent(),
      ...(operation === 'revoke' ? {} : revealAll(configured)),
      ...shape.headers,
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

  #authentication(server: AuthorizationServer, { client_auth }: PresetOperation, bearer?: Secret): ClientAuth {
    const { clientSecret, clientKey } = this.#settings;
    const secret = clientSecret?.reveal();
    const method = client_auth ?? this.#defaultMethod(server);
    switch (method) {
      case 'bearer':
        return (_server, _client, _body, headers) => headers.set('authorization', `Bearer ${bearer?.reveal() ?? ''}`);
      case 'both':
        return (as, client, body, headers) => {
          basicAuthentication(secret ?? '')(as, client, body, headers);
          ClientSecretPost(secret ?? '')(as, client, body, headers);
        };
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
