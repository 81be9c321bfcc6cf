import { booleanSetting, choiceSetting, countSetting, secondsSetting, textSetting } from './definitions.ts';

/** The settings of the endpoints below `/oauth2/`. Those of refresh token rotation apply to `/sso/token` too. */
export const OAUTH2_SETTINGS = {
  /** Which grants `/oauth2/` offers. Default: `all`, authorization code and device code. */
  flows: choiceSetting(
    ['all', 'code', 'device'],
    'which flows /oauth2/ offers: all, only the authorization code (code), or only the device code (device)',
  ),
  /**
   * Client authentication at `/oauth2/`. Default: `any`, what the client was registered for: a key set, a secret (post or
   * basic), or nothing.
   */
  clientAuthentication: choiceSetting(
    ['any', 'post', 'basic', 'both', 'none', 'private_key_jwt'],
    'client authentication at /oauth2/: as the client is registered (any), post, basic, post and basic in one request (both), only the client_id (none), or private_key_jwt',
  ),
  /** Clients may send their secret in the header and in the form of one request, against RFC 6749, 2.3. Default: false. */
  twoAuthenticationMethods: booleanSetting(
    false,
    'accept a secret in the header and in the form of one request at /oauth2/, which RFC 6749 forbids',
  ),
  /** PKCE (RFC 7636) at `/oauth2/`, also in the device flow. Default: `optional`, verified if a challenge was sent. */
  pkce: choiceSetting(
    ['optional', 'required', 'ignored'],
    'PKCE at /oauth2/, in the device flow too: optional (verified if a challenge was sent), required or ignored',
  ),
  /**
   * Tokens that are bound to a key of the client (DPoP, RFC 9449). Default: `optional`, those of requests with a proof;
   * `nonce`: a proof is required, with a nonce of the server.
   */
  dpop: choiceSetting(
    ['optional', 'required', 'nonce', 'ignored'],
    'DPoP at /oauth2/: a client may send proofs, to which its tokens are then bound (optional), it must (required), also with a nonce of the server (nonce), or proofs are ignored',
  ),
  /** Whether clients must push their authorization requests (RFC 9126). Default: false, they may. */
  requirePushedAuthorizationRequests: booleanSetting(
    false,
    '/oauth2/authorize accepts only requests that the client has pushed to /oauth2/par',
  ),
  /** Whether responses of `/oauth2/authorize` contain `iss` (RFC 9207). Default: true. */
  issInResponse: booleanSetting(true, 'add iss to the responses of /oauth2/authorize'),
  /**
   * Which redirect URIs `/oauth2/authorize` accepts of a client without registered ones: none (`registered`, the
   * default), any, those with https, or those with https and those of this machine.
   */
  redirectRule: choiceSetting(
    ['registered', 'any', 'https', 'https-or-localhost'],
    'which redirect URIs /oauth2/authorize accepts if the client has registered none: none (registered), any, https, or https-or-localhost',
  ),
  /** Whether clients may register themselves (RFC 7591). Default: true. */
  registration: booleanSetting(true, 'let clients register themselves at /oauth2/register'),
  /** The form of access tokens of `/oauth2/`: `opaque` (default), or a JWT that its API can verify (`jwt`, RFC 9068). */
  accessTokenFormat: choiceSetting(
    ['opaque', 'jwt'],
    'the form of access tokens of /oauth2/: opaque, or a JWT that an API can verify (jwt)',
  ),
  /** The web pages whose scripts may call the endpoints for programs: those of this machine (`loopback`, the default), all, or none. */
  cors: choiceSetting(
    ['loopback', 'any', 'none'],
    'the web pages whose scripts may call the endpoints for programs: those of this machine (loopback), any or none',
  ),
  /** What is wrong with the ID tokens of `/oauth2/`, which a client must refuse then. Default: `none`. */
  idTokenError: choiceSetting(
    ['none', 'iss', 'aud', 'exp', 'nonce', 'unsigned', 'unknown-key'],
    'what is wrong with the ID tokens of /oauth2/: nothing (none), iss, aud, exp, nonce, no signature (unsigned), or a key that is not in the JWK Set (unknown-key)',
  ),
  /** Lifetime of device codes, fixed when they are issued. A whole number of seconds; default: 600. */
  deviceCodeLifetime: secondsSetting('whole', 600, 'lifetime of device codes'),
  /** How long a device must wait between two polls. A whole number of seconds; default: 5. */
  deviceInterval: secondsSetting(
    'whole',
    5,
    'how long a device must wait between two polls; a faster one gets slow_down',
  ),
  /** Whether device authorization responses contain `verification_uri_complete`. Default: true. */
  verificationUriComplete: booleanSetting(true, 'add verification_uri_complete to device authorization responses'),
  /**
   * When a refresh replaces the refresh token: `always` (default), `never`, or `late`, when 70 % of `refreshLifetime` have
   * passed. A token that is not replaced stays valid, and the response contains it again.
   */
  refreshRotation: choiceSetting(
    ['always', 'never', 'late'],
    'when a refresh replaces the refresh token: always, never, or after 70 % of its lifetime (late)',
  ),
  /** `refreshGraceTime` ends as soon as the new access token is used. Default: false. */
  graceEndsOnUse: booleanSetting(false, 'refresh_grace_time also ends when the new access token is first used'),
};

/** What clouds do differently from the standards, or demand beyond them, at the endpoints below `/oauth2/`. */
export const QUIRK_SETTINGS = {
  /** The scopes that exist, with one space between them; others are an invalid_scope. Default: null, any. */
  scopes: textSetting('scopes', 'the scopes that exist; others are an invalid_scope'),
  /** Scopes that every authorization must request, with one space between them. Default: null, none. */
  requiredScopes: textSetting('scopes', 'the scopes that every authorization must request'),
  /** What separates scopes in requests and responses. Default: `space`. */
  scopeSeparator: choiceSetting(['space', 'comma'], 'what separates scopes in requests and responses: space or comma'),
  /**
   * Parameters that an operation (authorize, code, device, poll, refresh, client, revoke, api) needs, such as
   * `authorize:access_type=offline code:audience`. `{client_id}` in a value is the client's ID. Default: null, none.
   */
  requiredParameters: textSetting(
    'requirements',
    'parameters that an operation (authorize, code, device, poll, refresh, client, revoke or api) needs: OPERATION:NAME or OPERATION:NAME=VALUE',
  ),
  /** Request headers that an operation needs, see `requiredParameters`. Default: null, none. */
  requiredHeaders: textSetting('requirements', 'request headers that an operation needs, in the same form'),
  /** Whether the endpoints for programs accept parameters in the query, in addition to the form. Default: false. */
  parametersInQuery: booleanSetting(false, 'accept the parameters of token requests in the query too'),
  /** The grant_type of device polls: that of RFC 8628 (`urn`, the default), only `device_code`, or `both`. */
  deviceGrantType: choiceSetting(
    ['urn', 'device_code', 'both'],
    'the grant_type of device polls: that of RFC 8628 (urn), device_code, or both',
  ),
  /** Client authentication of device requests and polls: as set (`same`, the default), or the client_id is enough. */
  deviceAuthentication: choiceSetting(
    ['same', 'client_id'],
    'client authentication in the device flow: same as elsewhere, or the client_id is enough (client_id)',
  ),
  /** Client authentication of refreshes: as set (`same`, the default), `client_id` is enough, or not even that is needed. */
  refreshAuthentication: choiceSetting(
    ['same', 'client_id', 'nothing'],
    'client authentication of refreshes: same as elsewhere, the client_id is enough (client_id), or not even that is needed (nothing)',
  ),
  /** What authenticates a revocation: the client as set (`same`, the default), or an access token as `bearer`. */
  revocationAuthentication: choiceSetting(
    ['same', 'bearer'],
    'what authenticates a revocation at /oauth2/: the client, same as elsewhere, or an access token (bearer)',
  ),
  /** Which logins get a refresh token: all (`always`), or with the scope offline_access or access_type=offline. */
  refreshTokenIssue: choiceSetting(
    ['always', 'offline'],
    'which logins get a refresh token: always, or only those with the scope offline_access or access_type=offline (offline)',
  ),
  /** Whether responses to refreshes contain the refresh token. Default: true. */
  refreshTokenInRefresh: booleanSetting(true, 'add the refresh token to responses to refreshes'),
  /** The type of `expires_in`. Default: `number`. */
  expiresInType: choiceSetting(['number', 'string'], 'the type of expires_in: number or string'),
  /** The media type of token responses: JSON (default), or a form as in drafts of OAuth 2.0. Errors stay JSON. */
  tokenFormat: choiceSetting(['json', 'form'], 'the media type of token responses: json, or that of a form (form)'),
  /** Whether token responses contain `token_type`. Default: true. */
  tokenTypeInResponse: booleanSetting(true, 'add token_type to token responses'),
  /** `body`: token responses are `{"status":0,"body":{…}}`, and errors are a 200 with another status. Default: `none`. */
  tokenEnvelope: choiceSetting(
    ['none', 'body'],
    'the envelope of token responses: none, or a status and a body, and errors with 200 (body)',
  ),
  /** A member of token responses with the name of the user, such as `userid`. Default: null, none. */
  accountMember: textSetting('name', 'the name of a member of token responses with the name of the user'),
  /** The status of an invalid_grant. Default: `400`. */
  invalidGrantStatus: choiceSetting(['400', '401'], 'the status of an invalid_grant: 400 or 401'),
  /** The status of an authorization_pending. Default: `400`. */
  pendingStatus: choiceSetting(['400', '403'], 'the status of an authorization_pending: 400 or 403'),
  /** The status of `/api/whoami` for an access token that is not valid. Default: `401`. */
  invalidTokenStatus: choiceSetting(
    ['401', '403'],
    'the status of /api/whoami for an access token that is not valid: 401 or 403',
  ),
  /** How many refreshes a client may send in a minute; further ones get 429 with Retry-After. Default: 0, no limit. */
  refreshesPerMinute: countSetting(
    'refreshes that a client may send in a minute; further ones get 429 with Retry-After',
    'no limit',
  ),
};
