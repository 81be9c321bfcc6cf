import * as v from 'valibot';
import type { EmulatorOperation } from '../api/operation.ts';
import { text } from './portal-operations.ts';

/** RFC 7636, 4.3. */
export const challengeFields = {
  code_challenge: v.optional(v.string()),
  code_challenge_method: v.optional(v.literal('S256')),
};

/** The parameters of an authorization request. */
export const authorizationFields = {
  response_type: v.literal('code'),
  client_id: v.string(),
  redirect_uri: v.optional(text('Exactly as registered. Default: the first one that is registered')),
  scope: v.optional(v.string()),
  state: v.optional(v.string()),
  nonce: v.optional(text('OpenID Connect Core, 3.1.2.1')),
  prompt: v.optional(text('none, login, consent or select_account')),
  max_age: v.optional(text('How long ago the user may have logged in, in seconds')),
  login_hint: v.optional(text('The name of the user')),
  id_token_hint: v.optional(text('An ID token of the user')),
  resource: v.optional(text('The API that the access token is for (RFC 8707)')),
  ...challengeFields,
  dpop_jkt: v.optional(text('The thumbprint of the key that the client must prove (RFC 9449, 10)')),
};

const authorizeQuery = v.strictObject({
  ...authorizationFields,
  request_uri: v.optional(text('Of a request that was pushed; then only client_id is needed beside it')),
});

const deviceQuery = v.strictObject({
  user_code: v.optional(text('With or without hyphen, in any case; without it the page asks for it')),
});

const logoutFields = {
  id_token_hint: v.optional(text('An ID token of the user; without it the user is asked')),
  client_id: v.optional(text('Default: that of the id_token_hint')),
  post_logout_redirect_uri: v.optional(text('Exactly as registered for the client')),
  state: v.optional(v.string()),
};

/** The pages of the generic OAuth 2.0 server, which people open. */
export const pageOperations: readonly EmulatorOperation[] = [
  {
    method: 'get',
    path: '/oauth2/authorize',
    origin: 'frontend',
    id: 'oauth2Authorize',
    summary: 'Show the login page (RFC 6749, 4.1.1)',
    query: authorizeQuery,
    responses: {
      200: { description: 'The login page, or a confirmation page', body: 'text/html' },
      302: {
        description: 'An error for the redirect_uri, or with the setting auto_login a code',
        headers: { location: 'With code or error, state and iss' },
      },
      400: { description: 'A page: the client or the redirect_uri is invalid', body: 'text/html' },
    },
  },
  {
    method: 'post',
    path: '/oauth2/authorize',
    origin: 'frontend',
    id: 'oauth2LogIn',
    summary: 'Submit the login page',
    description: 'A client may send the parameters of the query in the form; then the response leads to the page.',
    query: authorizeQuery,
    form: v.object({
      username: v.optional(v.string()),
      password: v.optional(v.string()),
      action: v.optional(text('As for POST /sso/authorize')),
    }),
    responses: {
      200: { description: 'The login page, for another user', body: 'text/html' },
      303: { description: 'Redirect to the redirect_uri', headers: { location: 'With code or error, state and iss' } },
      400: { description: 'A page: the client or the redirect_uri is invalid', body: 'text/html' },
      403: { description: 'The login page again', body: 'text/html' },
    },
  },
  ...(['get', 'post'] as const).map(
    (method): EmulatorOperation => ({
      method,
      path: '/oauth2/logout',
      origin: 'frontend',
      id: `${method}Logout`,
      summary: 'End the login of a browser (OpenID Connect RP-Initiated Logout)',
      query: v.strictObject(logoutFields),
      ...(method === 'post' && {
        form: v.object({ ...logoutFields, action: v.optional(text('logout: the user has confirmed it')) }),
      }),
      responses: {
        200: { description: 'A page that asks for a confirmation, or says that it is done', body: 'text/html' },
        [method === 'get' ? 302 : 303]: {
          description: `Done; redirect to the post_logout_redirect_uri${method === 'get' ? '' : '. Without action, to the same request by GET'}`,
          headers: { location: 'With state' },
        },
        400: { description: 'A page: a parameter is invalid', body: 'text/html' },
      },
    }),
  ),
  {
    method: 'get',
    path: '/oauth2/device',
    origin: 'frontend',
    id: 'devicePage',
    summary: 'Show the page for a user code (RFC 8628, 3.3)',
    query: deviceQuery,
    responses: {
      200: { description: 'The page that asks for a user code, or for a login', body: 'text/html' },
      400: { description: 'The page that asks for a user code: it is wrong, expired or used', body: 'text/html' },
    },
  },
  {
    method: 'post',
    path: '/oauth2/device',
    origin: 'frontend',
    id: 'deviceLogIn',
    summary: 'Submit the login page of a device',
    query: deviceQuery,
    form: v.object({
      username: v.optional(v.string()),
      password: v.optional(v.string()),
      action: v.optional(text('As for POST /sso/authorize')),
    }),
    responses: {
      200: { description: 'A page: the device gets access, or the user has refused', body: 'text/html' },
      400: { description: 'The page that asks for a user code', body: 'text/html' },
      403: { description: 'The login page again', body: 'text/html' },
    },
  },
];
