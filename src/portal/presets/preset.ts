import * as v from 'valibot';

/**
 * The data file of a preset: what public sources say about the OAuth 2.0 authorization server of one cloud. A portal
 * with `preset = "NAME"` takes its configuration keys from `settings`; `protocol` says how the cloud departs from the
 * standards; the rest is for people.
 */

/** A placeholder in a text of a preset: `{client_id}`, or a variable of the preset. */
export const PLACEHOLDER = /\{([a-z][a-z0-9_]*)\}/g;

const text = v.pipe(v.string(), v.nonEmpty());
const texts = v.array(text);
const parameters = v.record(v.string(), text);

/** An https URL. It may contain variables, but a secret must not go to a domain that a variable chooses. */
const url = v.pipe(text, v.check(isHttpsUrl, 'an https URL of a fixed domain, without credentials and fragment'));
/** A duration as in the configuration, such as "6s" or "30d". */
const duration = v.pipe(v.string(), v.regex(/^[1-9]\d{0,5}[smhd]$/));

/** The keys of a table `[portals.NAME]` that the preset fills in. They mean what they mean in the configuration. */
const settingsSchema = v.strictObject({
  issuer: v.exactOptional(url),
  authorization_endpoint: v.exactOptional(url),
  token_endpoint: v.exactOptional(url),
  device_authorization_endpoint: v.exactOptional(url),
  revocation_endpoint: v.exactOptional(url),
  /** Only if the cloud published a client for everyone. */
  client_id: v.exactOptional(text),
  /** `post` sends client_id, and client_secret if one is configured, among the parameters. */
  client_auth: v.exactOptional(v.picklist(['basic', 'post', 'none', 'private_key_jwt'])),
  login: v.exactOptional(v.picklist(['auto', 'device', 'redirect', 'paste'])),
  redirect_uri: v.exactOptional(text),
  pkce: v.exactOptional(v.boolean()),
  scope_separator: v.exactOptional(text),
  authorization_params: v.exactOptional(parameters),
  token_params: v.exactOptional(parameters),
  error_codes: v.exactOptional(parameters),
  headers: v.exactOptional(parameters),
  token_lifetime: v.exactOptional(duration),
  login_lifetime: v.exactOptional(duration),
  idle_lifetime: v.exactOptional(duration),
  min_request_interval: v.exactOptional(duration),
  refresh_ends_access_token: v.exactOptional(v.boolean()),
  retry_lost_answer: v.picklist(['early', 'late']),
});

/** How a request differs from what `settings` say. */
const operationSchema = v.strictObject({
  /** `both`: Basic and the parameters at once; `bearer`: the access token instead of client authentication. */
  client_auth: v.exactOptional(v.picklist(['basic', 'post', 'both', 'none', 'bearer'])),
  /** `false` leaves the parameter client_id out; `true` sends it even beside Basic authentication. */
  client_id: v.exactOptional(v.boolean()),
  /** Where the parameters go. `query`: into the URL, with an empty body. The default is `form`. */
  placement: v.exactOptional(v.picklist(['form', 'query'])),
  /** The spelling of grant_type, if it is not that of RFC 8628. */
  grant_type: v.exactOptional(v.literal('device_code')),
  /** Which token a revocation names, if not the refresh token. */
  token: v.exactOptional(v.literal('access_token')),
  params: v.exactOptional(parameters),
  headers: v.exactOptional(parameters),
});

const responseSchema = v.strictObject({
  /** The member that contains the token response. */
  envelope: v.exactOptional(text),
  /** The member whose value tells success from failure, beside the HTTP status. */
  status: v.exactOptional(v.strictObject({ member: text, success: v.number() })),
  /** The names of members that are not those of RFC 6749. `account`: the member that identifies the login. */
  members: v.exactOptional(
    v.strictObject({
      access_token: v.exactOptional(text),
      refresh_token: v.exactOptional(text),
      expires_in: v.exactOptional(text),
      scope: v.exactOptional(text),
      id_token: v.exactOptional(text),
      account: v.exactOptional(text),
    }),
  ),
  /** What separates the names of the scope in a response, if it is not the same as in a request. */
  scope_separator: v.exactOptional(text),
});

const OPERATIONS = ['code', 'refresh', 'device_authorization', 'device_token', 'revoke'] as const;

/** An error response that no code explains, and what it means. All given conditions must hold; the first match counts. */
const errorSchema = v.pipe(
  v.strictObject({
    /** The operations that it may answer. Left out: all. */
    operations: v.exactOptional(v.pipe(v.array(v.picklist(OPERATIONS)), v.nonEmpty())),
    http: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599))),
    /** The values of the member `response.status.member`. */
    status: v.exactOptional(v.pipe(v.array(v.number()), v.nonEmpty())),
    /** `login_required`: only if the cloud says beyond doubt that the login has ended. */
    as: v.picklist(['pending', 'slow_down', 'deferred', 'refused', 'misconfigured', 'login_required']),
  }),
  v.check(({ http, status }) => (http ?? status) !== undefined, 'a condition'),
);

/** What the configuration keys can't express. */
const protocolSchema = v.strictObject({
  /** The endpoint for refreshes, if it is not the token endpoint. */
  refresh_endpoint: v.exactOptional(url),
  operations: v.exactOptional(
    v.strictObject({
      code: v.exactOptional(operationSchema),
      refresh: v.exactOptional(operationSchema),
      device_authorization: v.exactOptional(operationSchema),
      device_token: v.exactOptional(operationSchema),
      revoke: v.exactOptional(operationSchema),
    }),
  ),
  /** Whether a device login uses PKCE (RFC 7636), too. */
  device_pkce: v.exactOptional(v.boolean()),
  response: v.exactOptional(responseSchema),
  errors: v.exactOptional(v.array(errorSchema)),
});

/** For the developer of an appliance: how the cloud's API takes the token. The hub itself does not use it. */
const apiSchema = v.strictObject({
  /** What the API answers if the access token has expired, if that is not 401. */
  expired_token: v.exactOptional(text),
  headers: v.exactOptional(parameters),
  query: v.exactOptional(parameters),
  /** A request that shows whether a token is good. */
  probe: v.exactOptional(v.strictObject({ method: v.literal('GET'), url, note: v.exactOptional(text) })),
  /** Which token the API takes, if not the access token. */
  token: v.exactOptional(v.picklist(['access_token', 'id_token'])),
});

const variableSchema = v.strictObject({
  /** Completes "must be". */
  description: text,
  /** A regular expression for the whole value. It must exclude the characters that have a meaning in a URL. */
  pattern: v.pipe(text, v.regex(/^\^.*\$$/)),
  default: v.exactOptional(text),
});

export const presetSchema = v.strictObject({
  /** The name of the file, and of the preset in the configuration. */
  name: v.pipe(text, v.regex(/^[a-z][a-z0-9-]*$/)),
  title: text,
  /** One plain line: what appliances. */
  summary: text,
  /** How one registers an app at the cloud; null if the preset brings a client. */
  register: v.nullable(v.strictObject({ url, steps: v.pipe(texts, v.nonEmpty()) })),
  /** Whether the client needs a secret. `optional`: the cloud accepts clients with and without one. */
  client_secret: v.picklist(['required', 'optional', 'none']),
  /**
   * The least demanding class of redirect URI that the cloud is known to accept: `lan` (http, a LAN address),
   * `localhost` (http, localhost), `https`, or `fixed` (that of an app, in `settings.redirect_uri`). Null if there is
   * only the device flow.
   */
  redirect: v.nullable(v.picklist(['lan', 'localhost', 'https', 'fixed'])),
  variables: v.exactOptional(v.record(v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]*$/)), variableSchema)),
  settings: settingsSchema,
  /** The scope of a connection that names none; names are separated by spaces. */
  scope: v.exactOptional(text),
  protocol: v.exactOptional(protocolSchema),
  /** What a refresh does with the refresh token. `grace`: how long the old one may be used again. */
  rotation: v.strictObject({
    refresh_token: v.picklist(['single_use', 'grace', 'reusable', 'unchanged', 'unknown']),
    grace: v.exactOptional(duration),
    note: text,
  }),
  api: v.exactOptional(apiSchema),
  /** What public sources say that works, in plain words. */
  known: v.pipe(texts, v.nonEmpty()),
  /** What the preset assumes, or what an installer should know, that no source confirms. */
  unverified: texts,
  /** Public sources: `repository@commit:path`, a thread, or a documentation page. */
  sources: v.pipe(texts, v.nonEmpty()),
});

/** A preset, as in its file. */
export type Preset = v.InferOutput<typeof presetSchema>;
/** How one request of a preset's cloud differs from what its settings say. */
export type PresetOperation = v.InferOutput<typeof operationSchema>;
/** What the configuration keys can't express of a cloud. */
export type PresetProtocol = v.InferOutput<typeof protocolSchema>;
/** How a cloud's API takes the token. */
export type PresetApi = v.InferOutput<typeof apiSchema>;

function isHttpsUrl(value: string): boolean {
  const url = URL.parse(value.replaceAll(PLACEHOLDER, 'x'));
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  const [, , host = ''] = value.split('/');
  const domain = host.split('.').slice(-2);
  return domain.length === 2 && !domain.join().includes('{') && !value.includes('{client_id}');
}
