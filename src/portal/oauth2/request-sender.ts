import {
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretPost,
  clockSkew,
  customFetch,
  type HttpRequestOptions,
  None,
  PrivateKeyJwt,
} from 'oauth4webapi';
import type { Secret } from '../../core/secret.ts';
import { postForm, type RequestLimits, type RequestOutcome } from '../http.ts';
import type { PresetOperation } from '../presets/preset.ts';
import type { PortalOperation } from './responses.ts';
import type { ClientAuthMethod, OAuth2Settings } from './settings.ts';

/** Sends a request with the library: with this client, this client authentication and these options. */
type LibraryRequest = (
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

/** What the library gets as the response: the hub reads the real one itself (docs/decisions/oauth2-library.md). */
const UNREAD_RESPONSE = () => new Response(null, { status: 200 });

/**
 * Sends requests to an authorization server. The library makes them; this project's HTTP client sends them, so that the
 * hub knows whether a request has left it; and the protocol part of a preset changes what a cloud wants otherwise.
 */
export class RequestSender {
  readonly #settings: OAuth2Settings;
  readonly #ca: string[];
  readonly #wall: () => number;
  /** How far the portal's clock is ahead of the hub's, in seconds: a signed assertion has times. */
  #clockSkew = 0;

  /** @param wall the hub's clock, in ms since 1970 */
  constructor(settings: OAuth2Settings, ca: string[], wall: () => number) {
    this.#settings = settings;
    this.#ca = ca;
    this.#wall = wall;
  }

  async send({ server, operation, bearer, limits }: OutgoingRequest, request: LibraryRequest): Promise<RequestOutcome> {
    const { clientId, protocol } = this.#settings;
    const shape = protocol.operations?.[operation] ?? {};
    const outcomes: RequestOutcome[] = [];
    const client: Client = { client_id: clientId, [clockSkew]: this.#clockSkew };
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
    if (outcome.kind === 'answer' && outcome.response.portalTime !== null) {
      this.#clockSkew = Math.round((outcome.response.portalTime - this.#wall()) / 1000);
    }
    return outcome;
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
      ...(operation === 'revoke' ? {} : revealAll(configured)),
      ...shape.headers,
    };
    if (shape.placement !== 'query') return postForm({ url, form, headers: sent }, this.#ca, limits);
    for (const [name, value] of form) url.searchParams.append(name, value);
    return postForm({ url, form: new URLSearchParams(), headers: sent }, this.#ca, limits);
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
        return clientKey === null ? None() : PrivateKeyJwt(clientKey);
      case 'basic':
        // A secret in the form or in the header is never empty: that of a public client is left out.
        return secret === undefined ? None() : basicAuthentication(secret);
      case 'post':
        return secret === undefined ? None() : ClientSecretPost(secret);
      default:
        return None();
    }
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
  const encode = (value: string) => new URLSearchParams({ value }).toString().slice('value='.length);
  return (_server, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`);
  };
}

function revealAll(headers: Readonly<Record<string, Secret>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.reveal()]));
}
