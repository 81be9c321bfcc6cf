import * as v from 'valibot';
import { type EmulatorOperation, NotFoundBody } from '../api/operation.ts';
import type { OAuthErrorName } from '../oauth/authorization-request.ts';
import { TokenResponseBody } from '../oauth/issued-grants.ts';

export const text = (description: string) => v.pipe(v.string(), v.description(description));
export const url = (description: string) => v.pipe(v.string(), v.url(), v.description(description));

const ClientPathParameters = v.strictObject({ client_id: text('The client ID, a UUID') });

/** RFC 6749, 5.2. */
export function oauthErrorBody(...errors: readonly OAuthErrorName[]) {
  return v.strictObject({ error: v.picklist(errors), error_description: v.string() });
}

const OAuthErrorBody = oauthErrorBody(
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_scope',
  'unsupported_grant_type',
);

const clientFormFields = {
  client_id: v.optional(text('The client ID, unless it is in an Authorization header')),
  client_secret: v.optional(v.string()),
};

const TokenRequestForm = v.variant('grant_type', [
  v.object({
    grant_type: v.literal('authorization_code'),
    code: text('The authorization code'),
    ...clientFormFields,
    scope: v.optional(text('Space-separated names; default: an empty scope')),
    redirect_uri: v.optional(text('Ignored after a login through the helper')),
  }),
  v.object({
    grant_type: v.literal('refresh_token'),
    refresh_token: text('The refresh token of the latest token response'),
    ...clientFormFields,
  }),
]);

/** RFC 7009, 2.1. */
const RevocationForm = v.object({
  token: text('A refresh token, which is revoked with its whole grant, or an access token'),
  token_type_hint: v.optional(text('Ignored')),
  ...clientFormFields,
});

const authorizeQuery = v.strictObject({
  response_type: v.literal('code'),
  client_id: v.string(),
  state: v.optional(text('The state of a config response, or the state of a client that sends a redirect_uri')),
  redirect_uri: v.optional(
    text('A registered redirect URI of the client, or its code/set address: an ordinary authorization code flow'),
  ),
  scope: v.optional(text('The requested scope, in an ordinary authorization code flow')),
});

/** The responses to requests without a valid access token. */
export const invalidBearer = {
  400: {
    description: 'The Authorization header is malformed (RFC 6750, 3.1), or a required parameter or header is missing',
    body: v.strictObject({ error: v.literal('invalid_request') }),
    headers: { 'www-authenticate': 'Bearer' },
  },
  401: {
    description: 'The access token is missing or invalid (RFC 6750, 3), or the proof for it (RFC 9449, 7.1)',
    body: v.strictObject({
      error: v.picklist(['unauthorized', 'invalid_token', 'invalid_dpop_proof', 'use_dpop_nonce']),
      error_description: v.exactOptional(text('Why the access token is invalid')),
    }),
    headers: { 'www-authenticate': 'Bearer' },
  },
  403: {
    description: 'The access token is invalid, with the setting invalid_token_status; or it has not the scope openid',
    body: v.strictObject({
      error: v.picklist(['invalid_token', 'insufficient_scope']),
      error_description: v.exactOptional(text('Why the access token is invalid')),
    }),
    headers: { 'www-authenticate': 'Bearer' },
  },
} as const;

/** The six endpoints of docs/portal.md, the form of the login page, the revocation endpoint, and whoami. */
export const portalOperations: readonly EmulatorOperation[] = [
  {
    method: 'post',
    path: '/external/oauth2helper/config/{client_id}',
    id: 'config',
    summary: 'Get the URLs of one login (docs/portal.md, 1)',
    description: 'A body is ignored. The response contains / as \\/ and & as \\u0026.',
    params: ClientPathParameters,
    query: v.strictObject({
      redirect_url: v.optional(text('The address to which the browser is redirected with the code, after the login')),
    }),
    responses: {
      200: {
        description: 'The three URLs of one login',
        body: v.strictObject({
          authorize_url: url('The user opens it in a browser'),
          code_url: url('The client polls it for the code'),
          accesstoken_request_url: url('The token endpoint'),
        }),
      },
      400: {
        description: 'redirect_url is not accepted',
        body: v.strictObject({ error: v.literal('invalid_request'), error_description: v.string() }),
      },
      404: { description: 'Unknown client', body: NotFoundBody },
    },
  },
  {
    method: 'get',
    path: '/external/oauth2helper/code/get/{client_id}',
    id: 'codeGet',
    summary: 'Poll for the authorization code (docs/portal.md, 2)',
    params: ClientPathParameters,
    query: v.strictObject({ state: text('The state in the code_url') }),
    responses: {
      200: { description: 'The code is available', body: v.strictObject({ code: text('Valid for 30 to 60 seconds') }) },
      404: { description: 'No code yet, or no such client or state', body: NotFoundBody },
    },
  },
  {
    method: 'get',
    path: '/external/oauth2helper/code/set/{client_id}',
    id: 'codeSet',
    summary: 'Redirect target of the helper (docs/portal.md, 4)',
    params: ClientPathParameters,
    query: v.strictObject({
      state: v.optional(v.string()),
      code: v.optional(v.string()),
      error: v.optional(text('For a refused login: access_denied')),
    }),
    responses: {
      200: { description: 'A page: the helper has the code, or the login was refused', body: 'text/html' },
      302: { description: "Redirect to the client's redirect_url", headers: { location: 'With code or error' } },
      400: { description: 'A page: the request is invalid, or the login has expired', body: 'text/html' },
      404: { description: 'A page: unknown client', body: 'text/html' },
    },
  },
  {
    method: 'get',
    path: '/sso/authorize',
    origin: 'frontend',
    id: 'authorize',
    summary: 'Show the login page (docs/portal.md, 3)',
    query: authorizeQuery,
    responses: {
      200: {
        description: 'The login page, or a confirmation page if the browser has logged in before',
        body: 'text/html',
      },
      302: {
        description: 'With the setting auto_login: redirect to code/set',
        headers: { location: 'With code and state' },
      },
      400: { description: 'A page: the link is invalid', body: 'text/html' },
    },
  },
  {
    method: 'post',
    path: '/sso/authorize',
    origin: 'frontend',
    id: 'logIn',
    summary: 'Submit the login page',
    query: authorizeQuery,
    form: v.object({
      username: v.optional(v.string()),
      password: v.optional(v.string()),
      action: v.optional(
        text('refuse: the user refuses. If the browser has logged in before also continue, and other for another user'),
      ),
    }),
    responses: {
      200: { description: 'The login page, for another user', body: 'text/html' },
      303: { description: 'Redirect to code/set', headers: { location: 'With code or error, and state' } },
      400: { description: 'A page: the link is invalid', body: 'text/html' },
      403: {
        description: 'The login page again: user name or password is wrong, or the browser is no longer logged in',
        body: 'text/html',
      },
    },
  },
  {
    method: 'post',
    path: '/sso/token',
    origin: 'frontend',
    id: 'token',
    summary: 'Exchange an authorization code, or refresh (docs/portal.md, 5 and 6)',
    security: 'client',
    form: TokenRequestForm,
    responses: {
      200: { description: 'New tokens', body: TokenResponseBody, headers: { 'cache-control': 'no-store' } },
      400: { description: 'RFC 6749, 5.2', body: OAuthErrorBody },
      401: {
        description: 'Client authentication failed; no code or refresh token was used up',
        body: OAuthErrorBody,
        headers: { 'www-authenticate': 'If the client used the Authorization header' },
      },
    },
  },
  {
    method: 'post',
    path: '/oauth2/revoke',
    origin: 'both',
    id: 'revoke',
    summary: 'Revoke a token (RFC 7009)',
    description:
      'An optional endpoint of a portal (docs/portal.md, Optional members and revocation). At the frontend origin it is ' +
      'that of the generic OAuth 2.0 server: the client authenticates as at /oauth2/token.',
    security: 'client',
    form: RevocationForm,
    responses: {
      200: { description: 'The token is invalid; so is an unknown one' },
      400: { description: 'RFC 6749, 5.2; invalid_grant for a token of another client', body: OAuthErrorBody },
      401: {
        description: 'Client authentication failed; nothing was revoked',
        body: OAuthErrorBody,
        headers: { 'www-authenticate': 'If the client used the Authorization header' },
      },
    },
  },
  ...['', '/api/whoami'].map(
    (path): EmulatorOperation => ({
      method: 'get',
      path: `/.well-known/oauth-protected-resource${path}`,
      id: path === '' ? 'resourceMetadata' : 'whoamiMetadata',
      summary: 'Get the metadata of the stand-in for the cloud API (RFC 9728)',
      responses: {
        200: {
          description: 'RFC 9728, 2',
          body: v.strictObject({
            resource: url('What clients send as resource (RFC 8707)'),
            authorization_servers: v.pipe(v.array(v.string()), v.description('The frontend origin')),
            bearer_methods_supported: v.array(v.string()),
            dpop_bound_access_tokens_required: v.boolean(),
          }),
        },
      },
    }),
  ),
  {
    method: 'get',
    path: '/api/whoami',
    id: 'whoami',
    summary: 'Call a stand-in for the cloud API',
    security: 'bearer',
    responses: {
      200: {
        description: 'The access token is valid',
        body: v.strictObject({ user: v.string(), scope: v.nullable(v.string()) }),
      },
      ...invalidBearer,
    },
  },
];
