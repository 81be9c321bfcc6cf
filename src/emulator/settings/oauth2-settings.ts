import { booleanSetting, choiceSetting, secondsSetting } from './definitions.ts';

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
  /** PKCE (RFC 7636) at `/oauth2/`, also in the device flow. Default: `optional`, verified if a challenge was sent. */
  pkce: choiceSetting('optional', {
    choices: { optional: 'is optional', required: 'is required', ignored: 'is ignored' },
    label: 'PKCE at /oauth2/',
    description:
      'PKCE at /oauth2/, in the device flow too: optional (verified if a challenge was sent), required or ignored',
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
