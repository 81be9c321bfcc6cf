import * as v from 'valibot';
import { type EmulatorOperation, JwkSet } from '../api/operation.ts';
import { DEVICE_GRANT_TYPE, EXCHANGE_GRANT_TYPE } from '../grant-types.ts';
import { TokenResponseBody } from '../oauth/issued-grants.ts';
import { RegistrationMetadata } from '../settings/client-registry.ts';
import { authorizationFields, challengeFields } from './page-operations.ts';
import { invalidBearer, oauthErrorBody, text, url } from './portal-operations.ts';

const texts = (description: string) => v.pipe(v.array(v.string()), v.description(description));

const Overview = v.strictObject({
  description: v.string(),
  base_url: url('The origin of the helper endpoints'),
  issuer: url('The frontend origin'),
  metadata: url('RFC 8414, and OpenID Connect Discovery'),
  console: url('The console page'),
  api: url('The OpenAPI description of all endpoints'),
});

/** RFC 8414, 2. */
const ServerMetadata = v.strictObject({
  issuer: url('The frontend origin'),
  authorization_endpoint: v.exactOptional(url('Only if the setting flows includes the authorization code')),
  pushed_authorization_request_endpoint: v.exactOptional(url('The same')),
  require_pushed_authorization_requests: v.exactOptional(v.boolean()),
  token_endpoint: v.pipe(v.string(), v.url()),
  device_authorization_endpoint: v.exactOptional(url('Only if the setting flows includes the device code')),
  jwks_uri: url('The public keys of JWTs'),
  revocation_endpoint: v.pipe(v.string(), v.url()),
  introspection_endpoint: v.exactOptional(url('Left out if clients do not authenticate')),
  registration_endpoint: v.exactOptional(url('Only with the setting registration')),
  end_session_endpoint: v.pipe(v.string(), v.url()),
  userinfo_endpoint: v.pipe(v.string(), v.url()),
  scopes_supported: texts('The setting scopes, otherwise those of OpenID Connect; others exist, too'),
  response_types_supported: v.array(v.string()),
  response_modes_supported: v.array(v.string()),
  request_uri_parameter_supported: v.pipe(v.literal(false), v.description('Only those of pushed requests')),
  grant_types_supported: v.array(v.string()),
  token_endpoint_auth_methods_supported: texts('By the setting client_authentication'),
  token_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
  revocation_endpoint_auth_methods_supported: texts('By the setting client_authentication'),
  revocation_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
  introspection_endpoint_auth_methods_supported: v.exactOptional(texts('The same, without none')),
  introspection_endpoint_auth_signing_alg_values_supported: v.exactOptional(v.array(v.string())),
  code_challenge_methods_supported: v.exactOptional(texts('Left out if PKCE is ignored')),
  authorization_response_iss_parameter_supported: v.boolean(),
  dpop_signing_alg_values_supported: v.exactOptional(texts('Left out if DPoP is ignored')),
  prompt_values_supported: v.array(v.string()),
  subject_types_supported: v.array(v.string()),
  id_token_signing_alg_values_supported: v.array(v.string()),
});

const discovery = {
  origin: 'frontend',
  responses: { 200: { description: 'RFC 8414, 2', body: ServerMetadata } },
} as const;

const clientFields = {
  client_id: v.optional(v.string()),
  client_secret: v.optional(v.string()),
  client_assertion_type: v.optional(v.string()),
  client_assertion: v.optional(text('For private_key_jwt (RFC 7523)')),
};

const TokenRequestForm = v.variant('grant_type', [
  v.object({
    grant_type: v.literal('authorization_code'),
    code: text('The authorization code'),
    redirect_uri: v.optional(text('That of the authorization request, if it had one')),
    code_verifier: v.optional(text('RFC 7636, 4.5')),
    ...clientFields,
  }),
  v.object({
    grant_type: v.literal(DEVICE_GRANT_TYPE),
    device_code: v.string(),
    code_verifier: v.optional(text('If the device authorization request had a code_challenge')),
    ...clientFields,
  }),
  v.object({
    grant_type: v.literal('refresh_token'),
    refresh_token: v.string(),
    scope: v.optional(text('That of the grant, or less, for the access token')),
    ...clientFields,
  }),
  v.object({ grant_type: v.literal('client_credentials'), scope: v.optional(v.string()), ...clientFields }),
  v.object({
    grant_type: v.literal(EXCHANGE_GRANT_TYPE),
    subject_token: text('An access token or ID token of this server'),
    subject_token_type: text('RFC 8693, 3: that of an access token, an ID token or a JWT'),
    actor_token: v.optional(text('The same, of who acts for the user')),
    actor_token_type: v.optional(v.string()),
    requested_token_type: v.optional(text('That of an access token')),
    scope: v.optional(text('That of the subject_token, or less')),
    resource: v.optional(text('The API that the access token is for (RFC 8707)')),
    audience: v.optional(text('The same, by its name')),
    ...clientFields,
  }),
]);

/** RFC 6749, 5.1. */
const OAuth2TokenResponseBody = v.looseObject({
  ...TokenResponseBody.entries,
  expires_in: v.union([TokenResponseBody.entries.expires_in, text('With the setting expires_in_type string')]),
  token_type: v.exactOptional(TokenResponseBody.entries.token_type),
  scope: v.exactOptional(text('Left out if none was requested')),
  refresh_token: v.exactOptional(TokenResponseBody.entries.refresh_token),
  issued_token_type: v.exactOptional(text('Only after a token exchange (RFC 8693, 2.2.1)')),
});

/** With the setting token_envelope. */
const TokenEnvelope = v.strictObject({
  status: v.pipe(v.number(), v.description('0 for new tokens')),
  body: v.union([OAuth2TokenResponseBody, v.strictObject({})]),
  error: v.exactOptional(v.string()),
});

const unauthenticated = {
  description: 'Client authentication failed; nothing was used up',
  body: oauthErrorBody('invalid_client'),
  headers: { 'www-authenticate': 'If the client used the Authorization header' },
};

/** RFC 7591, 3.2.1. */
const Registration = v.looseObject({
  client_id: v.string(),
  client_id_issued_at: v.number(),
  client_secret: v.exactOptional(v.string()),
  client_secret_expires_at: v.exactOptional(v.literal(0)),
  registration_access_token: v.string(),
  registration_client_uri: v.pipe(v.string(), v.url()),
});

const invalidMetadata = {
  description: 'RFC 7591, 3.2.2',
  body: v.strictObject({
    error: v.picklist(['invalid_redirect_uri', 'invalid_client_metadata']),
    error_description: v.string(),
  }),
} as const;

/** The endpoints for programs of the generic OAuth 2.0 server, except revocation. */
export const oauth2Operations: readonly EmulatorOperation[] = [
  {
    method: 'get',
    path: '/',
    origin: 'both',
    id: 'overview',
    summary: 'Get the addresses with which a client, a test and a person begin',
    responses: { 200: { description: 'What this server is', body: Overview } },
  },
  {
    ...discovery,
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    id: 'oauthMetadata',
    summary: 'Get the metadata of the OAuth 2.0 server (RFC 8414)',
  },
  {
    ...discovery,
    method: 'get',
    path: '/.well-known/openid-configuration',
    id: 'openidConfiguration',
    summary: 'Get the metadata of the OAuth 2.0 server (OpenID Connect Discovery)',
  },
  {
    method: 'get',
    path: '/oauth2/jwks',
    origin: 'frontend',
    id: 'jwks',
    summary: 'Get the public keys of JWTs (RFC 7517)',
    responses: { 200: { description: 'A JWK Set, the newest key first', body: JwkSet } },
  },
  {
    method: 'post',
    path: '/oauth2/par',
    origin: 'frontend',
    id: 'pushAuthorizationRequest',
    summary: 'Push an authorization request (RFC 9126)',
    security: 'client',
    form: v.object({ ...authorizationFields, ...clientFields }),
    responses: {
      201: {
        description: 'The request is valid, and its request_uri can be opened once',
        body: v.strictObject({ request_uri: v.string(), expires_in: v.pipe(v.number(), v.description('Seconds')) }),
      },
      400: {
        description: 'RFC 9126, 2.3',
        body: oauthErrorBody(
          ...(['invalid_request', 'invalid_scope', 'invalid_target', 'unauthorized_client'] as const),
          ...(['unsupported_response_type', 'invalid_dpop_proof', 'use_dpop_nonce'] as const),
        ),
      },
      401: unauthenticated,
    },
  },
  {
    method: 'post',
    path: '/oauth2/token',
    origin: 'frontend',
    id: 'oauth2Token',
    summary: 'Exchange a code, poll with a device code, refresh, or get access as a client (RFC 6749, RFC 8628)',
    security: 'client',
    form: TokenRequestForm,
    responses: {
      200: {
        description:
          'New tokens, with the setting token_format as a form; with the setting token_envelope also an error',
        body: v.union([OAuth2TokenResponseBody, TokenEnvelope]),
        headers: { 'cache-control': 'no-store' },
      },
      400: {
        description: 'RFC 6749, 5.2; RFC 8628, 3.5; RFC 9449, 5',
        body: oauthErrorBody(
          'invalid_request',
          'invalid_grant',
          'unsupported_grant_type',
          'invalid_scope',
          'invalid_target',
          'unauthorized_client',
          'authorization_pending',
          'slow_down',
          'access_denied',
          'expired_token',
          'invalid_dpop_proof',
          'use_dpop_nonce',
        ),
      },
      401: { ...unauthenticated, body: oauthErrorBody('invalid_client', 'invalid_grant') },
      403: { description: 'With the setting pending_status', body: oauthErrorBody('authorization_pending') },
    },
  },
  {
    method: 'post',
    path: '/oauth2/device_authorization',
    origin: 'frontend',
    id: 'deviceAuthorization',
    summary: 'Begin the login of a device (RFC 8628, 3.1)',
    security: 'client',
    form: v.object({ scope: v.optional(v.string()), ...challengeFields, ...clientFields }),
    responses: {
      200: {
        description: 'The codes of the device and of its user',
        body: v.strictObject({
          device_code: v.string(),
          user_code: v.string(),
          verification_uri: url('The user opens it and enters the user code'),
          verification_uri_complete: v.exactOptional(url('With the user code')),
          expires_in: v.pipe(v.number(), v.description('Seconds')),
          interval: v.pipe(v.number(), v.description('Seconds between two polls')),
        }),
      },
      400: {
        description: 'RFC 6749, 5.2',
        body: oauthErrorBody('invalid_request', 'invalid_scope', 'unauthorized_client'),
      },
      401: unauthenticated,
    },
  },
  {
    method: 'post',
    path: '/oauth2/introspect',
    origin: 'frontend',
    id: 'introspect',
    summary: 'Ask what a token stands for (RFC 7662)',
    security: 'client',
    form: v.object({ token: text('An access token or a refresh token'), ...clientFields }),
    responses: {
      200: {
        description: 'RFC 7662, 2.2',
        body: v.union([
          v.strictObject({ active: v.literal(false) }),
          v.strictObject({
            active: v.literal(true),
            iss: url('The frontend origin'),
            sub: v.string(),
            username: v.string(),
            client_id: v.string(),
            scope: v.exactOptional(v.string()),
            act: v.exactOptional(v.strictObject({ sub: text('Who acts for the user (RFC 8693, 4.1)') })),
            cnf: v.exactOptional(v.strictObject({ jkt: text('The thumbprint of the key that it is bound to') })),
            iat: v.number(),
            exp: v.exactOptional(v.pipe(v.number(), v.description('Only of an access token'))),
            aud: v.exactOptional(url('The base origin; only of an access token')),
            token_type: v.exactOptional(v.picklist(['Bearer', 'DPoP'])),
          }),
        ]),
      },
      400: { description: 'RFC 6749, 5.2', body: oauthErrorBody('invalid_request') },
      401: unauthenticated,
    },
  },
  {
    method: 'post',
    path: '/oauth2/register',
    origin: 'frontend',
    id: 'register',
    summary: 'Register a client (RFC 7591)',
    json: RegistrationMetadata,
    responses: {
      201: { description: 'RFC 7591, 3.2.1', body: Registration },
      400: invalidMetadata,
      404: { description: 'Without the setting registration', body: v.strictObject({ error: v.literal('not_found') }) },
    },
  },
  ...(['get', 'put', 'delete'] as const).map(
    (method): EmulatorOperation => ({
      method,
      path: '/oauth2/register/{registered}',
      params: v.strictObject({ registered: text('The client ID') }),
      origin: 'frontend',
      id: `${method}Registration`,
      summary: 'Read, replace or remove a registration (RFC 7592)',
      security: 'bearer',
      ...(method === 'put' && { json: RegistrationMetadata }),
      responses: {
        ...(method === 'delete'
          ? { 204: { description: 'The client is removed' } }
          : { 200: { description: 'RFC 7592, 3', body: Registration } }),
        ...(method === 'put' && { 400: invalidMetadata }),
        401: {
          description: 'The registration access token is wrong',
          body: v.strictObject({ error: v.literal('invalid_token') }),
          headers: { 'www-authenticate': 'Bearer' },
        },
      },
    }),
  ),
  ...(['get', 'post'] as const).map(
    (method): EmulatorOperation => ({
      method,
      path: '/oauth2/userinfo',
      origin: 'frontend',
      id: `${method}Userinfo`,
      summary: 'Get the claims about the user (OpenID Connect Core, 5.3)',
      security: 'bearer',
      responses: {
        200: {
          description: 'The access token is valid',
          body: v.looseObject({
            sub: v.string(),
            name: v.optional(v.string()),
            preferred_username: v.optional(v.string()),
          }),
        },
        ...invalidBearer,
      },
    }),
  ),
];
