import * as v from 'valibot';
import { MAX_TITLE_LENGTH } from '../core/name.ts';
import { isLoopbackHost } from '../system/addresses.ts';
import { duration, text } from './schema-parts.ts';

const ORIGIN = 'an https URL without a path, such as "https://api.portal.example"; http only for a loopback address';
const origin = v.pipe(
  v.string(ORIGIN),
  v.check(isPortalOrigin, ORIGIN),
  v.transform((value) => new URL(value).origin),
);

const ENDPOINT =
  'an https URL such as "https://portal.example/oauth2/revoke", without a user name and without "#"; http only for a loopback address';
const endpoint = v.pipe(
  v.string(ENDPOINT),
  v.check(isEndpoint, ENDPOINT),
  v.transform((value) => new URL(value).href),
);

const PROXY = 'the http or https URL of a proxy without a path and a user name, such as "http://proxy.example:3128"';
const proxy = v.pipe(
  v.string(PROXY),
  v.check(isProxy, PROXY),
  v.transform((value) => new URL(value).origin),
);

const REDIRECT = '"auto", "off", or an http(s) URL to which /callback/<nonce> is appended';
const redirect = v.pipe(
  v.string(REDIRECT),
  v.check((value) => value === 'auto' || value === 'off' || isRedirectBase(value), REDIRECT),
);

const TYPE = '"helper" or "oauth2"';
const UUID = 'a UUID such as "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"';
const uuid = v.pipe(v.string(UUID), v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, UUID));

const BOOLEAN = 'true or false';
const PATH = 'a path';
const SECRET_FILE = 'a path, or the name of a systemd credential';
const TEXT = 'a text';
const TITLE = `a text of 1 to ${MAX_TITLE_LENGTH} characters`;
const TABLE = 'a table';
const PARAMETERS = 'a table of texts, such as { access_type = "offline" }';
const VARIABLES = 'a table of texts, such as { tenant = "common" }';
const HEADERS = 'a table of texts or files, such as { X-Api-Key = { file = "heating.key" } }';
const HEADER = 'a text of printable ASCII characters, or a file such as { file = "heating.key" }';
const RETRY_LOST_ANSWER = '"early" or "late"';
const LOGIN_LIFETIME = 'a duration from "1h" to "3650d", such as "7d"';
const TOKEN_LIFETIME = 'a duration from "1m" to "365d", such as "1h"';
const REQUEST_INTERVAL = 'a duration from "1s" to "1h", such as "6s"';
const ISSUER =
  'an https URL without "?" and "#", such as "https://id.portal.example"; http only for a loopback address';
const ERROR_CODES =
  'a table of the portal\'s own error codes and those of OAuth 2.0, such as { login_required = "invalid_grant" }';
const LOGIN = '"auto", "device", "redirect" or "paste"';
const CLIENT_AUTH = '"basic", "post", "none" or "private_key_jwt"';
const REDIRECT_URI = 'a URL without "#", exactly as registered at the portal';
const HEADER_NAME = /^[!#$%&'*+.^`|~\w-]{1,100}$/;

const loginDuration = duration(LOGIN_LIFETIME, 3_600_000, 3650 * 86_400_000);

/** The keys that are a `PortalPolicy`, under the names of its members. */
export const POLICY_KEYS = {
  retry_lost_answer: v.optional(v.picklist(['early', 'late'], RETRY_LOST_ANSWER), 'early'),
  login_lifetime: v.optional(loginDuration),
  idle_lifetime: v.optional(loginDuration),
  refresh_ends_access_token: v.optional(v.boolean(BOOLEAN), false),
};

/** The keys that every kind of portal has. */
const COMMON = {
  title: v.optional(v.pipe(v.string(TITLE), v.trim(), v.nonEmpty(TITLE), v.maxLength(MAX_TITLE_LENGTH, TITLE))),
  ca_file: v.optional(v.string(PATH), ''),
  proxy: v.optional(proxy),
  token_lifetime: v.optional(duration(TOKEN_LIFETIME, 60_000, 365 * 86_400_000)),
  revocation_endpoint: v.optional(endpoint),
  ...POLICY_KEYS,
};

export const helperPortalSchema = v.strictObject(
  {
    type: v.literal('helper'),
    base_url: origin,
    frontend_url: origin,
    client_id: uuid,
    client_secret_file: text(SECRET_FILE),
    redirect: v.optional(redirect, 'auto'),
    ...COMMON,
  },
  TABLE,
);

const issuer = v.pipe(v.string(ISSUER), v.check(isIssuer, ISSUER));
const redirectUri = v.pipe(v.string(REDIRECT_URI), v.check(isRedirectUri, REDIRECT_URI));
const parameters = v.record(v.string(), v.string(PARAMETERS), PARAMETERS);
const errorCodes = v.record(
  v.pipe(v.string(), v.nonEmpty(ERROR_CODES)),
  v.picklist(
    [
      'invalid_grant',
      'invalid_client',
      'unauthorized_client',
      'invalid_request',
      'temporarily_unavailable',
      'authorization_pending',
      'slow_down',
      'access_denied',
      'expired_token',
    ],
    ERROR_CODES,
  ),
  ERROR_CODES,
);
const headers = v.record(
  v.pipe(v.string(), v.regex(HEADER_NAME, HEADERS)),
  v.union(
    // With a message at each check: the library's own would show the value.
    [
      v.pipe(v.string(), v.regex(/^[\x20-\x7e]+$/, HEADER)),
      v.strictObject({ file: v.pipe(v.string(), v.nonEmpty(HEADER)) }),
    ],
    HEADER,
  ),
  HEADERS,
);

/** The keys that are members of `OAuth2Settings`, under their names there. */
export const OAUTH2_KEYS = {
  issuer: v.optional(issuer),
  client_id: text(TEXT),
  client_auth: v.optional(v.picklist(['basic', 'post', 'none', 'private_key_jwt'], CLIENT_AUTH)),
  login: v.optional(v.picklist(['auto', 'device', 'redirect', 'paste'], LOGIN), 'auto'),
  redirect_uri: v.optional(redirectUri),
  pkce: v.optional(v.boolean(BOOLEAN), true),
  scope_separator: v.optional(text(TEXT), ' '),
  authorization_params: v.optional(parameters, {}),
  token_params: v.optional(parameters, {}),
  error_codes: v.optional(errorCodes, {}),
  min_request_interval: v.optional(duration(REQUEST_INTERVAL, 1000, 3_600_000)),
  token_lifetime: COMMON.token_lifetime,
};

export const oauth2PortalSchema = v.strictObject(
  {
    type: v.literal('oauth2'),
    preset: v.optional(text(TEXT)),
    variables: v.optional(v.record(v.string(), v.string(VARIABLES), VARIABLES)),
    authorization_endpoint: v.optional(endpoint),
    token_endpoint: v.optional(endpoint),
    device_authorization_endpoint: v.optional(endpoint),
    client_secret_file: v.optional(text(SECRET_FILE)),
    client_key_file: v.optional(text(SECRET_FILE)),
    headers: v.optional(headers, {}),
    ...COMMON,
    ...OAUTH2_KEYS,
  },
  TABLE,
);

/** A table `[portals.NAME]`, whose type was filled in. */
export const portalSchema = v.variant('type', [helperPortalSchema, oauth2PortalSchema], TYPE);

function isPortalOrigin(value: string): boolean {
  const url = URL.parse(value);
  return isEndpoint(value) && url?.pathname === '/' && url.search === '';
}

/** The fragment of an endpoint would be dropped (RFC 6749, 3.2). */
function isEndpoint(value: string): boolean {
  const url = URL.parse(value);
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}

function isProxy(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
}

function isRedirectBase(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === '';
}

/** An issuer identifier (RFC 8414, 2). */
function isIssuer(value: string): boolean {
  return isEndpoint(value) && URL.parse(value)?.search === '';
}

/** Portals accept addresses of other schemes for their own apps. A fragment is not allowed (RFC 6749, 3.1.2). */
function isRedirectUri(value: string): boolean {
  const url = URL.parse(value);
  return (
    url !== null && url.hash === '' && url.username === '' && !/^(javascript|data|blob|file|about):$/.test(url.protocol)
  );
}
