import * as v from 'valibot';

/**
 * What public sources say about the OAuth 2.0 authorization server of a cloud: an entry of `clouds.json`. A portal with
 * `preset = "NAME"` takes its configuration keys from `settings`; `protocol` says how the cloud departs from the
 * standards; the emulator imitates the cloud from the same entry; the rest is for people.
 */

/** A placeholder in a text: `{client_id}`, or a variable of the cloud. */
export const PLACEHOLDER = /\{([a-z][a-z0-9_]*)\}/g;

const text = v.pipe(v.string(), v.nonEmpty());
const texts = v.array(text);
const parameters = v.record(v.string(), text);

/** An https URL. It may contain variables, but a secret must not go to a domain that a variable chooses. */
const url = v.pipe(text, v.check(isHttpsUrl, 'an https URL of a fixed domain, without credentials and fragment'));
/** A duration as in the configuration, such as "6s" or "30d". */
const duration = v.pipe(v.string(), v.regex(/^[1-9]\d{0,5}[smhd]$/));

/**
 * The keys of a table `[portals.NAME]` that the preset fills in. They mean what they mean in the configuration, whose own
 * schema checks them; here are those that somebody else reads, and URLs.
 */
const settingsSchema = v.objectWithRest(
  {
    issuer: v.exactOptional(url),
    authorization_endpoint: v.exactOptional(url),
    token_endpoint: v.exactOptional(url),
    device_authorization_endpoint: v.exactOptional(url),
    revocation_endpoint: v.exactOptional(url),
    /** Only if the cloud published a client for everyone. */
    client_id: v.exactOptional(text),
    /** `post` sends client_id, and client_secret if one is configured, among the parameters. */
    client_auth: v.exactOptional(v.picklist(['basic', 'post', 'none'])),
    login: v.exactOptional(v.picklist(['auto', 'device', 'redirect', 'paste'])),
    redirect_uri: v.exactOptional(text),
    scope_separator: v.exactOptional(text),
    authorization_params: v.exactOptional(parameters),
    token_params: v.exactOptional(parameters),
    token_lifetime: v.exactOptional(duration),
    login_lifetime: v.exactOptional(duration),
    idle_lifetime: v.exactOptional(duration),
    refresh_ends_access_token: v.exactOptional(v.boolean()),
    retry_lost_answer: v.picklist(['early', 'late']),
  },
  v.union([text, v.boolean(), parameters]),
);

/** How a request differs from what `settings` say. */
const operationSchema = v.strictObject({
  /** `bearer`: the access token instead of client authentication. */
  client_auth: v.exactOptional(v.picklist(['basic', 'post', 'none', 'bearer'])),
  /** `false` leaves the parameter client_id out; `true` sends it even beside Basic authentication. */
  client_id: v.exactOptional(v.boolean()),
  /** Where the parameters go. `query`: into the URL, with an empty body. The default is `form`. */
  placement: v.exactOptional(v.picklist(['form', 'query'])),
  /** The spelling of grant_type, if it is not that of RFC 8628. */
  grant_type: v.exactOptional(v.literal('device_code')),
  /** Which token a revocation names, if not the refresh token. */
  token: v.exactOptional(v.literal('access_token')),
  params: v.exactOptional(parameters),
});

/** What the configuration keys can't express. */
const protocolSchema = v.strictObject({
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
  /** The member of a token response that identifies the login, for clouds whose tokens do not. */
  account_member: v.exactOptional(text),
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

/** What people read about a variable. */
const variableTextsSchema = v.strictObject({
  /** What the hub's page calls its field. */
  label: text,
  /** Completes "must be". */
  description: text,
});

const variableSchema = v.strictObject({
  ...variableTextsSchema.entries,
  /** A regular expression for the whole value. It must exclude the characters that have a meaning in a URL. */
  pattern: v.pipe(text, v.regex(/^\^.*\$$/)),
  default: v.exactOptional(text),
});

export const cloudSchema = v.strictObject({
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
  /** In German what the hub's page shows: the summary, the steps of `register`, and the texts of the variables. */
  de: v.strictObject({
    summary: text,
    steps: v.exactOptional(v.pipe(texts, v.nonEmpty())),
    variables: v.exactOptional(v.record(v.string(), variableTextsSchema)),
  }),
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
  /**
   * What the emulator imitates of the cloud beside what it derives from the rest: settings of its library, by name.
   * `publicClient`: its default client has no secret.
   */
  emulator: v.exactOptional(v.record(v.string(), v.union([text, v.number(), v.boolean()]))),
  /** What public sources say that works, in plain words. */
  known: v.pipe(texts, v.nonEmpty()),
  /** What the preset assumes, or what an installer should know, that no source confirms. */
  unverified: texts,
  /** Public sources: `repository@commit:path`, a thread, or a documentation page. */
  sources: v.pipe(texts, v.nonEmpty()),
});

/** A known cloud, with the name of its preset. */
export interface Cloud extends v.InferOutput<typeof cloudSchema> {
  readonly name: string;
}
/** How one request to a cloud differs from what its settings say. */
export type CloudOperation = v.InferOutput<typeof operationSchema>;
/** What the configuration keys can't express of a cloud. */
export type CloudProtocol = v.InferOutput<typeof protocolSchema>;

function isHttpsUrl(value: string): boolean {
  const url = URL.parse(value.replaceAll(PLACEHOLDER, 'x'));
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  const [, , host = ''] = value.split('/');
  const domain = host.split('.').slice(-2);
  return domain.length === 2 && !domain.join().includes('{') && !value.includes('{client_id}');
}
