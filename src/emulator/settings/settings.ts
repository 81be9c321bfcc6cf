import {
  booleanSetting,
  choiceSetting,
  countSetting,
  optionalSecondsSetting,
  regularExpressionSetting,
  secondsSetting,
} from './definitions.ts';
import { OAUTH2_SETTINGS, QUIRK_SETTINGS } from './oauth2-settings.ts';

/** All settings, by their names in the library. */
export const SETTINGS = {
  /** Opening the authorize URL logs in the first user, or the one that `login_hint` names, without a page. Default: false. */
  autoLogin: booleanSetting(
    false,
    'opening the authorize URL logs in the first user, or the one that login_hint names',
  ),
  /** Every link asks for name and password, even in a browser that has logged in before. Default: false. */
  forgetLogins: booleanSetting(
    false,
    'every link asks for name and password; otherwise a browser that has logged in before is only asked to confirm',
  ),
  /** Lifetime of the links in a config response, fixed when they are made. Seconds; default: 1800. */
  stateLifetime: secondsSetting('above 0', 1800, 'lifetime of the links in a config response'),
  /** Lifetime of authorization codes. Seconds; default: 45 (docs/portal.md: 30 to 60). */
  codeLifetime: secondsSetting('above 0', 45, 'lifetime of authorization codes'),
  /** Lifetime of access tokens, fixed when they are issued. A whole number of seconds; default: 3600. */
  tokenLifetime: secondsSetting('whole', 3600, 'lifetime of access tokens'),
  /** Lifetime of an unused refresh token, from its issue. Seconds; default: null, no limit. */
  refreshLifetime: optionalSecondsSetting('lifetime of an unused refresh token'),
  /** How long after the login a grant can be refreshed, no matter how often. Seconds; default: null, no limit. */
  grantLifetime: optionalSecondsSetting('how long after the login a grant can be refreshed, no matter how often'),
  /**
   * How long after the login a grant and all its tokens are valid, no matter how often it is refreshed. Token responses
   * contain the remaining time as `refresh_token_expires_in`. Seconds; default: null, no limit.
   */
  loginLifetime: optionalSecondsSetting(
    'how long after the login a grant and all its tokens are valid; token responses contain refresh_token_expires_in',
  ),
  /** For how many later generations a used refresh token still gets new tokens. Default: 0, for none. */
  refreshGrace: countSetting('how many newer refresh tokens may exist while a used one still works'),
  /** How long after its first use a refresh token gets the same tokens again. Seconds; default: 0, not at all. */
  refreshGraceTime: secondsSetting(
    'from 0',
    0,
    'how long after its first use a refresh token gets the same tokens again',
  ),
  /** A used refresh token after its grace is only refused (default), or it revokes its whole grant. */
  onReuse: choiceSetting(
    ['refuse', 'revoke-family'],
    'what the reuse of a refresh token causes: it is refused (refuse), or its whole grant is revoked (revoke-family)',
  ),
  /** A refresh ends the access tokens that were issued before it. Default: false, they stay valid until they expire. */
  refreshEndsAccessToken: booleanSetting(false, 'a refresh ends the access token that was issued before it'),
  /** The exchange of a code revokes the older grants of the same user at the same client. Default: false. */
  oneLoginPerUser: booleanSetting(false, 'a new login ends the older grants of the same user at the same client'),
  /** HTTP Basic at the token endpoint (RFC 6749, 2.3.1). Default: `accept`. */
  basic: choiceSetting(['accept', 'refuse'], 'whether the token endpoint accepts HTTP Basic: accept or refuse'),
  /** Whether a refused login is reported to the client's redirect_url as `error=access_denied`. Default: true. */
  relayRefusal: booleanSetting(true, 'report a refused login to the redirect_url as error=access_denied'),
  /** Whether code_url still serves a code after its exchange, until it expires. Default: `gone` (404). */
  codeUrlAfterExchange: choiceSetting(
    ['gone', 'served'],
    'what code_url does after the exchange of its code: answer 404 (gone), or still serve the code (served)',
  ),
  /**
   * A JavaScript regular expression of at most 200 characters: config answers 400 to a redirect_url in which it finds a
   * match. Default: null, none.
   */
  refuseRedirectUrls: regularExpressionSetting(
    'config answers 400 to a redirect_url that matches this regular expression',
  ),
  /** Body of error responses to programs: JSON of RFC 6749 (default), a web page, or nothing. Pages for people stay. */
  errorBody: choiceSetting(
    ['json', 'html', 'empty'],
    'body of error responses: JSON of RFC 6749, html, or nothing (empty)',
  ),
  /** Compression of the responses of all endpoints, although the client does not ask for it. Default: `none`. */
  contentEncoding: choiceSetting(
    ['none', 'gzip', 'deflate', 'br'],
    'compression of responses, whatever the client accepts: none, gzip, deflate or br',
  ),
  /** Requests without `User-Agent` get a 403 with a web page, as from the firewall of a CDN. Default: false. */
  requireUserAgent: booleanSetting(
    false,
    'requests without User-Agent get a 403 with a web page, as from the firewall of a CDN',
  ),
  /**
   * Token responses contain an `id_token`, a JWT that identifies the user, whatever the scope. Default: false, they do
   * only if the granted scope contains `openid`.
   */
  idToken: booleanSetting(
    false,
    'token responses contain an id_token, a JWT that identifies the user, even if the scope does not contain openid',
  ),
  /**
   * How many requests of each kind (config, code/get, token, revoke, whoami) a client may send in `rateLimitWindow`;
   * further ones get 429 with Retry-After and are not processed. Default: 0, no limit.
   */
  rateLimit: countSetting(
    'requests of one kind that a client may send in a window; further ones get 429 with Retry-After',
    'no limit',
  ),
  /** Length of the window of `rateLimit`. Seconds; default: 60. */
  rateLimitWindow: secondsSetting('above 0', 60, 'length of the window of the rate limit'),
  ...OAUTH2_SETTINGS,
  ...QUIRK_SETTINGS,
};

/**
 * How the emulated portal behaves if docs/portal.md or an RFC leaves it open. All settings can change at run time. Times are in
 * seconds.
 */
export type Settings = { readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name]['initial'] };

/** Some of the settings; those that are left out keep their value. */
export type SettingOptions = { readonly [Name in keyof Settings]?: Settings[Name] | undefined };
