import { booleanSetting, choiceSetting, countSetting, secondsSetting, textSetting } from './definitions.ts';

/** The settings of the endpoints below `/oauth2/`. Those of refresh token rotation apply to `/sso/token` too. */
export const OAUTH2_SETTINGS = {
  /** Which grants `/oauth2/` offers. Default: `all`, authorization code and device code. */
  flows: choiceSetting('all', {
    choices: { all: 'authorization code and device code', code: 'authorization code', device: 'device code' },
    label: 'Flows of /oauth2/',
    description:
      'which flows /oauth2/ offers: all, only the authorization code (code), or only the device code (device)',
  }),
  /**
   * Client authentication at `/oauth2/`. Default: `any`, what the client was registered for: a key set, a secret (post or
   * basic), or nothing.
   */
  clientAuthentication: choiceSetting('any', {
    choices: {
      any: 'as the client is registered',
      post: 'the secret in the form',
      basic: 'HTTP Basic',
      both: 'HTTP Basic and the form together',
      none: 'only the client_id',
      private_key_jwt: 'a signed JWT',
    },
    label: 'Client authentication at /oauth2/',
    description:
      'client authentication at /oauth2/: as the client is registered (any), post, basic, post and basic in one request (both), only the client_id (none), or private_key_jwt',
  }),
  /** Clients may send their secret in the header and in the form of one request, against RFC 6749, 2.3. Default: false. */
  twoAuthenticationMethods: booleanSetting(false, {
    label: 'Two methods of client authentication in one request are accepted',
    description: 'accept a secret in the header and in the form of one request at /oauth2/, which RFC 6749 forbids',
  }),
  /** PKCE (RFC 7636) at `/oauth2/`, also in the device flow. Default: `optional`, verified if a challenge was sent. */
  pkce: choiceSetting('optional', {
    choices: { optional: 'is optional', required: 'is required', ignored: 'is ignored' },
    label: 'PKCE at /oauth2/',
    description:
      'PKCE at /oauth2/, in the device flow too: optional (verified if a challenge was sent), required or ignored',
  }),
  /**
   * Tokens that are bound to a key of the client (DPoP, RFC 9449). Default: `optional`, those of requests with a proof;
   * `nonce`: a proof is required, with a nonce of the server.
   */
  dpop: choiceSetting('optional', {
    choices: {
      optional: 'are optional',
      required: 'are required',
      nonce: 'are required, with a nonce',
      ignored: 'are ignored',
    },
    label: 'Proofs of DPoP at /oauth2/',
    description:
      'DPoP at /oauth2/: a client may send proofs, to which its tokens are then bound (optional), it must (required), also with a nonce of the server (nonce), or proofs are ignored',
  }),
  /** Whether clients must push their authorization requests (RFC 9126). Default: false, they may. */
  requirePushedAuthorizationRequests: booleanSetting(false, {
    label: 'Authorization requests must be pushed',
    description: '/oauth2/authorize accepts only requests that the client has pushed to /oauth2/par',
  }),
  /** Whether responses of `/oauth2/authorize` contain `iss` (RFC 9207). Default: true. */
  issInResponse: booleanSetting(true, {
    label: 'Authorization responses contain iss',
    description: 'add iss to the responses of /oauth2/authorize',
  }),
  /**
   * Which redirect URIs `/oauth2/authorize` accepts of a client without registered ones: none (`registered`, the
   * default), any, those with https, or those with https and those of this machine.
   */
  redirectRule: choiceSetting('registered', {
    choices: {
      registered: 'only registered ones',
      any: 'any',
      https: 'https',
      'https-or-localhost': 'https or localhost',
    },
    label: 'Redirect URIs of a client that has registered none',
    description:
      'which redirect URIs /oauth2/authorize accepts if the client has registered none: none (registered), any, https, or https-or-localhost',
  }),
  /** Whether clients may register themselves (RFC 7591). Default: true. */
  registration: booleanSetting(true, {
    label: 'Clients may register themselves',
    description: 'let clients register themselves at /oauth2/register',
  }),
  /** The form of access tokens of `/oauth2/`: `opaque` (default), or a JWT that its API can verify (`jwt`, RFC 9068). */
  accessTokenFormat: choiceSetting('opaque', {
    choices: { opaque: 'opaque', jwt: 'a JWT' },
    label: 'Access tokens',
    description: 'the form of access tokens of /oauth2/: opaque, or a JWT that an API can verify (jwt)',
  }),
  /** The web pages whose scripts may call the endpoints for programs: those of this machine (`loopback`, the default), all, or none. */
  cors: choiceSetting('loopback', {
    choices: { loopback: 'those of this machine', any: 'all', none: 'none' },
    label: 'Web pages whose scripts may call the endpoints',
    description:
      'the web pages whose scripts may call the endpoints for programs: those of this machine (loopback), any or none',
  }),
  /** What is wrong with the ID tokens of `/oauth2/`, which a client must refuse then. Default: `none`. */
  idTokenError: choiceSetting('none', {
    choices: {
      none: 'nothing',
      iss: 'its issuer',
      aud: 'its audience',
      exp: 'it has expired',
      nonce: 'its nonce',
      unsigned: 'it is not signed',
      'unknown-key': 'its key is unknown',
    },
    label: 'What is wrong with ID tokens',
    description:
      'what is wrong with the ID tokens of /oauth2/: nothing (none), iss, aud, exp, nonce, no signature (unsigned), or a key that is not in the JWK Set (unknown-key)',
  }),
  /** Lifetime of device codes, fixed when they are issued. A whole number of seconds; default: 600. */
  deviceCodeLifetime: secondsSetting('whole', 600, {
    label: 'Lifetime of device codes',
    description: 'lifetime of device codes',
  }),
  /** How long a device must wait between two polls. A whole number of seconds; default: 5. */
  deviceInterval: secondsSetting('whole', 5, {
    label: 'Interval of device polls',
    description: 'how long a device must wait between two polls; a faster one gets slow_down',
  }),
  /** Whether device authorization responses contain `verification_uri_complete`. Default: true. */
  verificationUriComplete: booleanSetting(true, {
    label: 'Device authorization responses contain verification_uri_complete',
    description: 'add verification_uri_complete to device authorization responses',
  }),
  /**
   * When a refresh replaces the refresh token: `always` (default), `never`, or `late`, when 70 % of `refreshLifetime` have
   * passed. A token that is not replaced stays valid, and the response contains it again.
   */
  refreshRotation: choiceSetting('always', {
    choices: { always: 'always', never: 'never', late: 'after 70 % of its lifetime' },
    label: 'A refresh replaces the refresh token',
    description: 'when a refresh replaces the refresh token: always, never, or after 70 % of its lifetime (late)',
  }),
  /** `refreshGraceTime` ends as soon as the new access token is used. Default: false. */
  graceEndsOnUse: booleanSetting(false, {
    label: 'That time ends at the first use of the new access token',
    description: 'refresh_grace_time also ends when the new access token is first used',
  }),
};

/** What clouds do differently from the standards, or demand beyond them, at the endpoints below `/oauth2/`. */
export const QUIRK_SETTINGS = {
  /** The scopes that exist, with one space between them; others are an invalid_scope. Default: null, any. */
  scopes: textSetting('scopes', {
    label: 'Scopes that exist',
    description: 'the scopes that exist; others are an invalid_scope',
  }),
  /** Scopes that every authorization must request, with one space between them. Default: null, none. */
  requiredScopes: textSetting('scopes', {
    label: 'Scopes that must be requested',
    description: 'the scopes that every authorization must request',
  }),
  /** What separates scopes in requests and responses. Default: `space`. */
  scopeSeparator: choiceSetting('space', {
    choices: { space: 'a space', comma: 'a comma' },
    label: 'Separator of scopes',
    description: 'what separates scopes in requests and responses: space or comma',
  }),
  /**
   * Parameters that an operation (authorize, code, device, poll, refresh, client, revoke, api) needs, such as
   * `authorize:access_type=offline code:audience`. `{client_id}` in a value is the client's ID. Default: null, none.
   */
  requiredParameters: textSetting('requirements', {
    label: 'Required parameters',
    description:
      'parameters that an operation (authorize, code, device, poll, refresh, client, revoke or api) needs: OPERATION:NAME or OPERATION:NAME=VALUE',
  }),
  /** Request headers that an operation needs, see `requiredParameters`. Default: null, none. */
  requiredHeaders: textSetting('requirements', {
    label: 'Required request headers',
    description: 'request headers that an operation needs, in the same form',
  }),
  /** Whether the endpoints for programs accept parameters in the query, in addition to the form. Default: false. */
  parametersInQuery: booleanSetting(false, {
    label: 'Parameters may be in the query',
    description: 'accept the parameters of token requests in the query too',
  }),
  /** The grant_type of device polls: that of RFC 8628 (`urn`, the default), only `device_code`, or `both`. */
  deviceGrantType: choiceSetting('urn', {
    choices: { urn: 'that of RFC 8628', device_code: 'device_code', both: 'either' },
    label: 'grant_type of device polls',
    description: 'the grant_type of device polls: that of RFC 8628 (urn), device_code, or both',
  }),
  /** Client authentication of device requests and polls: as set (`same`, the default), or the client_id is enough. */
  deviceAuthentication: choiceSetting('same', {
    choices: { same: 'as for the other requests', client_id: 'the client_id is enough' },
    label: 'Client authentication in the device flow',
    description: 'client authentication in the device flow: same as elsewhere, or the client_id is enough (client_id)',
  }),
  /** Client authentication of refreshes: as set (`same`, the default), `client_id` is enough, or not even that is needed. */
  refreshAuthentication: choiceSetting('same', {
    choices: { same: 'as for the other requests', client_id: 'the client_id is enough', nothing: 'none is needed' },
    label: 'Client authentication of refreshes',
    description:
      'client authentication of refreshes: same as elsewhere, the client_id is enough (client_id), or not even that is needed (nothing)',
  }),
  /** What authenticates a revocation: the client as set (`same`, the default), or an access token as `bearer`. */
  revocationAuthentication: choiceSetting('same', {
    choices: { same: 'the client, as for the other requests', bearer: 'an access token' },
    label: 'What authenticates a revocation at /oauth2/',
    description:
      'what authenticates a revocation at /oauth2/: the client, same as elsewhere, or an access token (bearer)',
  }),
  /** Which logins get a refresh token: all (`always`), or with the scope offline_access or access_type=offline. */
  refreshTokenIssue: choiceSetting('always', {
    choices: { always: 'every login', offline: 'a login with offline_access or access_type=offline' },
    label: 'What gets a refresh token',
    description:
      'which logins get a refresh token: always, or only those with the scope offline_access or access_type=offline (offline)',
  }),
  /** Whether responses to refreshes contain the refresh token. Default: true. */
  refreshTokenInRefresh: booleanSetting(true, {
    label: 'Responses to refreshes contain the refresh token',
    description: 'add the refresh token to responses to refreshes',
  }),
  /** The type of `expires_in`. Default: `number`. */
  expiresInType: choiceSetting('number', {
    choices: { number: 'a number', string: 'a string' },
    label: 'Type of expires_in',
    description: 'the type of expires_in: number or string',
  }),
  /** The media type of token responses: JSON (default), or a form as in drafts of OAuth 2.0. Errors stay JSON. */
  tokenFormat: choiceSetting('json', {
    choices: { json: 'JSON', form: 'a form' },
    label: 'Media type of token responses',
    description: 'the media type of token responses: json, or that of a form (form)',
  }),
  /** Whether token responses contain `token_type`. Default: true. */
  tokenTypeInResponse: booleanSetting(true, {
    label: 'Token responses contain token_type',
    description: 'add token_type to token responses',
  }),
  /** `body`: token responses are `{"status":0,"body":{…}}`, and errors are a 200 with another status. Default: `none`. */
  tokenEnvelope: choiceSetting('none', {
    choices: { none: 'none', body: 'a status and a body, and errors with 200' },
    label: 'Envelope of token responses',
    description: 'the envelope of token responses: none, or a status and a body, and errors with 200 (body)',
  }),
  /** A member of token responses with the name of the user, such as `userid`. Default: null, none. */
  accountMember: textSetting('scopes', {
    label: 'Member of token responses with the name of the user',
    description: 'the name of a member of token responses with the name of the user',
  }),
  /** The status of an invalid_grant. Default: `400`. */
  invalidGrantStatus: choiceSetting('400', {
    choices: { 400: '400', 401: '401' },
    label: 'Status of invalid_grant',
    description: 'the status of an invalid_grant: 400 or 401',
  }),
  /** The status of an authorization_pending. Default: `400`. */
  pendingStatus: choiceSetting('400', {
    choices: { 400: '400', 403: '403' },
    label: 'Status of authorization_pending',
    description: 'the status of an authorization_pending: 400 or 403',
  }),
  /** The status of `/api/whoami` for an access token that is not valid. Default: `401`. */
  invalidTokenStatus: choiceSetting('401', {
    choices: { 401: '401', 403: '403' },
    label: 'Status of the API for an invalid access token',
    description: 'the status of /api/whoami for an access token that is not valid: 401 or 403',
  }),
  /** How many refreshes a client may send in a minute; further ones get 429 with Retry-After. Default: 0, no limit. */
  refreshesPerMinute: countSetting({
    nothing: 'no limit',
    unit: '0 for no limit',
    label: 'Refreshes per client and minute',
    description: 'refreshes that a client may send in a minute; further ones get 429 with Retry-After',
  }),
};
