import * as v from 'valibot';
import { type EmulatorOperation, NotFoundBody } from '../api/operation.ts';
import type { OAuthError } from '../http/token-request.ts';
import { TokenResponseBody } from '../oauth/issued-grants.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const url = (description: string) => v.pipe(v.string(), v.url(), v.description(description));

const ClientPathParameters = v.strictObject({ client_id: text('The client, a UUID') });

/** RFC 6749, 5.2. */
const OAuthErrorBody: v.GenericSchema<{ error: OAuthError['error']; error_description: string }> = v.strictObject({
  error: v.picklist(['invalid_request', 'invalid_client', 'invalid_grant', 'invalid_scope', 'unsupported_grant_type']),
  error_description: v.string(),
});

const clientFormFields = {
  client_id: v.optional(text('The client, unless it is in an Authorization header')),
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
    refresh_token: text('That of the latest token response'),
    ...clientFormFields,
  }),
]);

const authorizeQuery = v.strictObject({
  response_type: v.literal('code'),
  client_id: v.string(),
  state: v.optional(text('Of a config response; of the client itself where it gives a redirect_uri')),
  redirect_uri: v.optional(text("One of the client's own, or its code/set address: an ordinary code flow")),
  scope: v.optional(text('In an ordinary code flow: what to ask the user for')),
});

/** The six endpoints of the specification, and whoami. */
export const portalOperations: readonly EmulatorOperation[] = [
  {
    method: 'post',
    path: '/external/oauth2helper/config/{client_id}',
    id: 'config',
    summary: 'Get the helper configuration (specification, endpoint 1)',
    description: 'A body is ignored. The portal writes / as \\/ and & as \\u0026.',
    params: ClientPathParameters,
    query: v.strictObject({ redirect_url: v.optional(text('Where a browser brings the code after the login')) }),
    responses: {
      200: {
        description: 'The three URLs of one login',
        body: v.strictObject({
          authorize_url: url('Where the user has to go'),
          code_url: url('What the client polls'),
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
    summary: 'Poll for the authorization code (endpoint 2)',
    params: ClientPathParameters,
    query: v.strictObject({ state: text('That of the code_url') }),
    responses: {
      200: { description: 'The code is there', body: v.strictObject({ code: text('Lives 30 to 60 seconds') }) },
      404: { description: 'No code yet, or no such client or state', body: NotFoundBody },
    },
  },
  {
    method: 'get',
    path: '/external/oauth2helper/code/set/{client_id}',
    id: 'codeSet',
    summary: 'Redirect target of the helper (endpoint 6)',
    params: ClientPathParameters,
    query: v.strictObject({
      state: v.optional(v.string()),
      code: v.optional(v.string()),
      error: v.optional(text('Of a refused login: access_denied')),
    }),
    responses: {
      200: { description: 'A page: the helper has the code, or the login was refused', body: 'text/html' },
      302: { description: "On to the client's redirect_url", headers: { location: 'With code, or error' } },
      400: { description: 'A page: no good, or too late', body: 'text/html' },
      404: { description: 'A page: unknown client', body: 'text/html' },
    },
  },
  {
    method: 'get',
    path: '/sso/authorize',
    origin: 'frontend',
    id: 'authorize',
    summary: 'The login page (endpoint 3)',
    query: authorizeQuery,
    responses: {
      200: {
        description: 'The login page, or for a browser that has logged in a page to say yes or no',
        body: 'text/html',
      },
      302: { description: 'With automatic login: on to code/set', headers: { location: 'With code and state' } },
      400: { description: 'A page: the link is no good', body: 'text/html' },
    },
  },
  {
    method: 'post',
    path: '/sso/authorize',
    origin: 'frontend',
    id: 'logIn',
    summary: 'What the login page sends',
    query: authorizeQuery,
    form: v.object({
      username: v.optional(v.string()),
      password: v.optional(v.string()),
      action: v.optional(
        text('refuse: the user refuses; of a browser that has logged in also continue, and other for another user'),
      ),
    }),
    responses: {
      200: { description: 'The login page: another user wants to log in', body: 'text/html' },
      303: { description: 'On to code/set', headers: { location: 'With code, or error, and state' } },
      400: { description: 'A page: the link is no good', body: 'text/html' },
      403: {
        description: 'The login page again: user name or password is wrong, or the browser is not known any more',
        body: 'text/html',
      },
    },
  },
  {
    method: 'post',
    path: '/sso/token',
    origin: 'frontend',
    id: 'token',
    summary: 'Exchange an authorization code, or refresh (endpoints 4 and 5)',
    security: 'client',
    form: TokenRequestForm,
    responses: {
      200: { description: 'A new pair of tokens', body: TokenResponseBody, headers: { 'cache-control': 'no-store' } },
      400: { description: 'RFC 6749, 5.2', body: OAuthErrorBody },
      401: {
        description: 'The client did not prove who it is; no code and no token was touched',
        body: OAuthErrorBody,
        headers: { 'www-authenticate': 'Where the client tried an Authorization header' },
      },
    },
  },
  {
    method: 'get',
    path: '/api/whoami',
    id: 'whoami',
    summary: 'Stands in for the cloud API',
    security: 'bearer',
    responses: {
      200: {
        description: 'The access token is good',
        body: v.strictObject({ user: v.string(), scope: v.nullable(v.string()) }),
      },
      400: {
        description: 'The Authorization header is damaged (RFC 6750, 3.1)',
        body: v.strictObject({ error: v.literal('invalid_request') }),
        headers: { 'www-authenticate': 'Bearer' },
      },
      401: {
        description: 'There is no access token, or it is no good (RFC 6750, 3)',
        body: v.strictObject({ error: v.picklist(['unauthorized', 'invalid_token']) }),
        headers: { 'www-authenticate': 'Bearer' },
      },
    },
  },
];
