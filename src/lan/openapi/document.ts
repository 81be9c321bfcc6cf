import * as v from 'valibot';
import { CONNECTION_STATES } from '../../core/connections/connection-status.ts';
import {
  describeOperation,
  type JsonObject,
  type OperationDescription,
  type ResponseDescription,
} from '../../system/http/openapi.ts';
import { RegistrationRequestSchema } from '../oauth/client-metadata.ts';
import type { OAuthErrorCode } from '../oauth/errors.ts';
import { DeviceAuthorizationFormSchema, RevocationFormSchema, TokenFormSchema } from '../oauth/request-schemas.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const url = (description: string) => v.pipe(v.string(), v.url(), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const scope = v.optional(text('Space-separated; omitted if there is none'));

/** The token response (RFC 6749, 5.1). */
const TokenResponseSchema = v.strictObject({
  access_token: text('Access token of the portal, for calls to the cloud API'),
  token_type: v.literal('Bearer'),
  expires_in: seconds('Remaining lifetime in seconds'),
  refresh_token: v.optional(
    text('Refresh token that the hub issued at the end of the device flow; it does not rotate'),
  ),
  scope,
  id_token: v.optional(
    text('ID token of the portal (OpenID Connect Core 1.0, 2); omitted if it issued none, or the scope has no openid'),
  ),
});

/** The device authorization response (RFC 8628, 3.2). */
const DeviceAuthorizationResponseSchema = v.strictObject({
  device_code: text('The code with which the appliance polls the token endpoint'),
  user_code: text('The code that a person enters at verification_uri'),
  verification_uri: url("The hub's page that asks for the code"),
  verification_uri_complete: url('verification_uri with the user_code, for a QR code or a link'),
  expires_in: seconds('Lifetime of both codes in seconds'),
  interval: seconds('Shortest time between two polls in seconds'),
});

/** The registration response (RFC 7591, 3.2.1). */
const RegistrationResponseSchema = v.strictObject({
  client_id: v.string(),
  client_id_issued_at: v.optional(seconds('Seconds since 1970; omitted while the hub does not know the time')),
  client_secret: v.optional(text('Shown only once; omitted for an appliance with jwks')),
  client_secret_expires_at: v.optional(v.pipe(v.literal(0), v.description('0: the secret does not expire'))),
  client_name: text('The NAME of the appliance on the hub'),
  token_endpoint_auth_method: v.string(),
  grant_types: v.array(v.string()),
  response_types: v.array(v.string()),
  scope,
  software_id: v.optional(v.string()),
  jwks: v.optional(v.strictObject({ keys: v.array(v.record(v.string(), v.unknown())) })),
  ca_fingerprint: text("The pin of the hub's CA: base64url SHA-256 of its public key (SPKI)"),
  comparison_code: v.optional(
    text('Show it to the installer, who compares it before approval; omitted if no approval is needed'),
  ),
});

/** The revocation response. RFC 7009, 2.2 defines no body, but some libraries parse it. */
const RevocationResponseSchema = v.strictObject({});

/** What an appliance may know of its connections. */
const ConnectionsResponseSchema = v.strictObject({
  hub: v.strictObject({ id: text('As in mDNS'), name: v.string(), version: v.string() }),
  connections: v.array(
    v.strictObject({
      name: text('As in its address, /connections/NAME'),
      title: text('What people call it'),
      cloud: v.nullable(text("The preset of its cloud, such as netatmo; null if it is none of the hub's presets")),
      state: v.picklist(CONNECTION_STATES),
    }),
  ),
});

/** The authorization server metadata (RFC 8414, 2). */
const MetadataResponseSchema = v.strictObject({
  issuer: url('The origin of the request'),
  authorization_endpoint: url('Explains that people log in on the page of the hub'),
  token_endpoint: v.pipe(v.string(), v.url()),
  device_authorization_endpoint: v.pipe(v.string(), v.url()),
  registration_endpoint: v.pipe(v.string(), v.url()),
  revocation_endpoint: v.pipe(v.string(), v.url()),
  grant_types_supported: v.array(v.string()),
  response_types_supported: v.array(v.string()),
  token_endpoint_auth_methods_supported: v.array(v.string()),
  token_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
  revocation_endpoint_auth_methods_supported: v.array(v.string()),
  revocation_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
});

/** An error response (RFC 6749, 5.2). @param errors the possible values of `error` */
const errorResponseSchema = (...errors: OAuthErrorCode[]) =>
  v.strictObject({
    error: v.picklist(errors),
    error_description: text('For logs: what is wrong, and what to do'),
    error_uri: v.optional(url("The hub's page, where a person can fix the problem")),
  });

/**
 * One method of an OAuth endpoint. Its responses leave out those that every path may give (400 for a request that is not
 * valid HTTP, 404 for an unknown path, 405, 413, 421).
 */
interface OAuthOperation extends OperationDescription {
  /** The credentials that the operation accepts; default: none. */
  readonly security?: 'client' | 'invite';
}

const noStoreHeaders = { 'cache-control': 'no-store' };
const retryAfterHeaders = { ...noStoreHeaders, 'retry-after': 'Seconds' };

const badRequest = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'Invalid request, or not possible in the current state',
  body: errorResponseSchema(...errors),
  headers: noStoreHeaders,
});
const tooLarge: ResponseDescription = {
  description: 'The body is too large',
  body: errorResponseSchema('invalid_request'),
  headers: noStoreHeaders,
};
const tooManyRequests = (...errors: OAuthErrorCode[]): ResponseDescription => ({
  description: 'Too many requests of this kind',
  body: errorResponseSchema(...errors),
  headers: retryAfterHeaders,
});
const unavailable = (description: string): ResponseDescription => ({
  description,
  body: errorResponseSchema('temporarily_unavailable'),
  headers: retryAfterHeaders,
});

/** The responses of every endpoint that requires client authentication. */
const clientAuthenticationResponses = {
  401: {
    description: 'Client authentication failed',
    body: errorResponseSchema('invalid_client'),
    headers: { ...noStoreHeaders, 'www-authenticate': 'Basic' },
  },
  413: tooLarge,
} as const;

/** The operations of the OAuth authorization server. */
export const oauthOperations: readonly OAuthOperation[] = [
  {
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    id: 'metadata',
    summary: 'Authorization server metadata (RFC 8414)',
    responses: {
      200: { description: 'All URLs use the host of the request', body: MetadataResponseSchema },
    },
  },
  {
    method: 'post',
    path: '/oauth/token',
    id: 'token',
    summary: 'Get an access token (RFC 6749, 4.4 and 6; RFC 8628, 3.4)',
    security: 'client',
    form: TokenFormSchema,
    responses: {
      200: { description: 'An access token', body: TokenResponseSchema, headers: noStoreHeaders },
      400: badRequest(
        'access_denied',
        'authorization_pending',
        'expired_token',
        'invalid_grant',
        'invalid_request',
        'invalid_scope',
        'invalid_target',
        'slow_down',
        'unauthorized_client',
        'unsupported_grant_type',
      ),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable('No valid token is available at present'),
    },
  },
  {
    method: 'post',
    path: '/oauth/device_authorization',
    id: 'deviceAuthorization',
    summary: 'Start a pairing with the device flow (RFC 8628, 3.1)',
    security: 'client',
    form: DeviceAuthorizationFormSchema,
    responses: {
      200: {
        description: 'The pairing has started and waits for a person',
        body: DeviceAuthorizationResponseSchema,
        headers: noStoreHeaders,
      },
      400: badRequest('invalid_request', 'invalid_scope', 'invalid_target', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client', 'temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or does not know the time and can't check a client_assertion"),
    },
  },
  {
    method: 'post',
    path: '/oauth/revoke',
    id: 'revoke',
    summary: 'Report that the cloud rejected the access token, or revoke a refresh token (RFC 7009)',
    description:
      'For the current access token: the hub never issues it again and gets a new one, at most once a minute. For a refresh token that the hub issued: it becomes invalid. Any other token has no effect; the response is the same.',
    security: 'client',
    form: RevocationFormSchema,
    responses: {
      200: {
        description: 'Accepted, also for an unknown token',
        body: RevocationResponseSchema,
        headers: noStoreHeaders,
      },
      400: badRequest('invalid_request', 'invalid_target', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable("The hub can't write its store, or does not know the time and can't check a client_assertion"),
    },
  },
  {
    method: 'post',
    path: '/oauth/connections',
    id: 'connections',
    summary: 'List the connections that the appliance uses, with their clouds and states',
    description:
      'An extension of Latchkey. The parameters are those of the client authentication, if it uses the form.',
    security: 'client',
    responses: {
      200: { description: 'The connections', body: ConnectionsResponseSchema, headers: noStoreHeaders },
      400: badRequest('invalid_request', 'invalid_target', 'unauthorized_client'),
      ...clientAuthenticationResponses,
      429: tooManyRequests('invalid_client'),
      503: unavailable("The hub does not know the time and can't check a client_assertion"),
    },
  },
  {
    method: 'post',
    path: '/oauth/register',
    id: 'register',
    summary: 'Register an appliance (RFC 7591)',
    description:
      'Requires an initial access token, or registration opened by an installer. Without an initial access token, the appliance can do nothing until an installer approves it.',
    security: 'invite',
    json: RegistrationRequestSchema,
    responses: {
      201: { description: 'The appliance is registered', body: RegistrationResponseSchema, headers: noStoreHeaders },
      400: badRequest('invalid_request', 'invalid_client_metadata'),
      401: {
        description: 'Registration is closed, or the initial access token is invalid',
        body: errorResponseSchema('invalid_token'),
        headers: { ...noStoreHeaders, 'www-authenticate': 'Bearer' },
      },
      413: tooLarge,
      429: tooManyRequests('temporarily_unavailable'),
      503: unavailable("The hub can't write its store, or has reached its maximum number of appliances"),
    },
  },
];

/**
 * The OpenAPI 3.1 description of a hub's OAuth endpoints, generated from the schemas that validate requests.
 * @param version the program's version
 */
export function openApiDocument(version: string): JsonObject {
  const paths = oauthOperations.map((operation) => {
    const { path, method, security } = operation;
    return [path, { [method]: describeOperation(operation, 'oauth', security && [{ [security]: [] }, {}]) }];
  });
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey hub',
      version,
      description:
        'An OAuth 2.0 authorization server for the appliances of a home. All paths: 404 for an unknown path, 405 with ' +
        'Allow for another method, 413 for a body over 16 KiB, 400 for a request that is not valid HTTP, and 421 for a ' +
        "host name that is not the hub's.",
    },
    servers: [{ url: '/', description: "The hub's HTTPS port, 8443 by default" }],
    tags: [{ name: 'oauth', description: 'OAuth endpoints for appliances' }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        client: {
          type: 'http',
          scheme: 'basic',
          description: 'client_secret_basic; client_secret_post and private_key_jwt use form parameters instead',
        },
        invite: { type: 'http', scheme: 'bearer', description: 'An initial access token (latchkey invite)' },
      },
    },
  };
}
