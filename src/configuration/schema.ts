import { isIP } from 'node:net';
import * as v from 'valibot';
import { isLoopbackHost } from '../system/addresses.ts';
import { parseDuration, parseSocketAddress } from './values.ts';

/**
 * The schema of the configuration file. The message of every check completes "KEY: must be …"; validation.ts adds the
 * key and the value that it found.
 */
const text = (expected: string) => v.pipe(v.string(expected), v.nonEmpty(expected));

const duration = (expected: string, min: number, max: number) => {
  const inRange = (value: number | null) => value !== null && value >= min && value <= max;
  return v.pipe(
    v.string(expected),
    v.check((value) => inRange(parseDuration(value)), expected),
    v.transform((value) => parseDuration(value) ?? min),
  );
};

const PORT = 'a port number from 0 to 65535, where 0 is any free port';
const port = v.pipe(v.number(PORT), v.integer(PORT), v.minValue(0, PORT), v.maxValue(65_535, PORT));

const INSTANCE_NAME = 'a name of 1 to 63 bytes, because it is the mDNS instance name';
const instanceName = v.pipe(text(INSTANCE_NAME), v.maxBytes(63, INSTANCE_NAME));

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

const REDIRECT = '"auto", "off", or an http(s) URL to which /callback/<nonce> is appended';
const redirect = v.pipe(
  v.string(REDIRECT),
  v.check((value) => value === 'auto' || value === 'off' || isRedirectBase(value), REDIRECT),
);

const LISTEN = 'a list of IP addresses';
const listen = v.pipe(
  v.array(
    v.pipe(
      v.string(LISTEN),
      v.check((value) => isIP(value) !== 0, LISTEN),
    ),
    LISTEN,
  ),
  v.nonEmpty(LISTEN),
);

const METRICS = 'an IP address and a port, such as "127.0.0.1:9480" or "[::1]:9480", or "" for none';
const metricsListen = v.pipe(
  v.string(METRICS),
  v.check((value) => value === '' || parseSocketAddress(value) !== null, METRICS),
  v.transform(parseSocketAddress),
);

const COMMAND = 'a list of strings, a program and its arguments, such as ["/etc/latchkey/notify", "--urgent"]';
const command = v.pipe(
  v.array(v.string(COMMAND), COMMAND),
  v.check((value) => value[0] !== undefined && value[0] !== '' && !value.some((part) => part.includes('\0')), COMMAND),
);

const WEBHOOK = 'an https URL such as "https://notify.example/latchkey"; http only for a loopback address';
const webhook = v.pipe(v.string(WEBHOOK), v.check(isWebhook, WEBHOOK));

const UUID = 'a UUID such as "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"';
const uuid = v.pipe(v.string(UUID), v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, UUID));

const BOOLEAN = 'true or false';
const PATH = 'a path';
const SECRET_FILE = 'a path, or the name of a systemd credential';
const SCOPE = 'a string such as "Monitoring RemoteControl"';
const PORTAL = 'the name of a section [portals.NAME]';
const CONNECTION = 'the name of a section [connections.NAME]';
const CLIENT_ID = '1 to 100 characters of A-Z, a-z, 0-9 and "-._~"';
const ADDRESS = '"auto", an IP address, or the name of an interface';
const RETRY_LOST_ANSWER = '"early" or "late"';
const LIFETIME = 'a duration from "1m" to "24h"';
const POLL = 'a duration from "5s" to "10s"';
const LOGIN_LIFETIME = 'a duration from "1h" to "3650d", such as "7d"';
const TABLE = 'a table';

const loginDuration = duration(LOGIN_LIFETIME, 3_600_000, 3650 * 86_400_000);

export const portalSchema = v.strictObject(
  {
    base_url: origin,
    frontend_url: origin,
    client_id: uuid,
    client_secret_file: text(SECRET_FILE),
    ca_file: v.optional(v.string(PATH), ''),
    retry_lost_answer: v.optional(v.picklist(['early', 'late'], RETRY_LOST_ANSWER), 'early'),
    redirect: v.optional(redirect, 'auto'),
    revocation_endpoint: v.optional(endpoint),
    login_lifetime: v.optional(loginDuration),
    idle_lifetime: v.optional(loginDuration),
    refresh_ends_access_token: v.optional(v.boolean(BOOLEAN), false),
  },
  TABLE,
);

export const connectionSchema = v.strictObject(
  {
    scope: v.optional(v.string(SCOPE)),
    portal: v.optional(text(PORTAL)),
  },
  TABLE,
);

export const applianceSchema = v.strictObject(
  {
    connection: v.optional(text(CONNECTION)),
    scope: v.optional(v.string(SCOPE)),
    portal: v.optional(text(PORTAL)),
    client_id: v.optional(text(CLIENT_ID)),
    secret_file: v.optional(text(SECRET_FILE)),
    jwks_file: v.optional(text(PATH)),
  },
  TABLE,
);

const hub = v.strictObject(
  {
    name: v.optional(instanceName),
    state_dir: v.optional(text(PATH)),
    control_socket: v.optional(text(PATH)),
  },
  TABLE,
);

const lan = v.strictObject(
  {
    http_port: v.optional(port, 8480),
    https_port: v.optional(port, 8443),
    address: v.optional(text(ADDRESS), 'auto'),
    listen: v.optional(listen, ['0.0.0.0', '::']),
    mdns: v.optional(v.boolean(BOOLEAN), true),
    certificate_file: v.optional(text(PATH)),
    key_file: v.optional(text(SECRET_FILE)),
  },
  TABLE,
);

const pairing = v.strictObject(
  {
    lifetime: v.optional(duration(LIFETIME, 60_000, 86_400_000), '15m'),
    poll_interval: v.optional(duration(POLL, 5000, 10_000), '5s'),
    on_start: v.optional(v.boolean(BOOLEAN), false),
  },
  TABLE,
);

const metrics = v.strictObject({ listen: v.optional(metricsListen, '127.0.0.1:9480') }, TABLE);

const notify = v.strictObject({ command: v.optional(command), webhook: v.optional(webhook) }, TABLE);

export const configurationSchema = v.strictObject({
  hub: v.optional(hub, {}),
  lan: v.optional(lan, {}),
  portals: v.optional(v.record(v.string(), portalSchema, TABLE), {}),
  pairing: v.optional(pairing, {}),
  connections: v.optional(v.record(v.string(), connectionSchema, TABLE), {}),
  appliances: v.optional(v.record(v.string(), applianceSchema, TABLE), {}),
  notify: v.optional(notify, {}),
  metrics: v.optional(metrics, {}),
});

/** The keys that the table of a section may have. */
export function sectionEntries(section: string): object {
  const sections = { hub, lan, pairing, notify, metrics, connections: connectionSchema, appliances: applianceSchema };
  return Object.entries(sections).find(([name]) => name === section)?.[1].entries ?? portalSchema.entries;
}

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

function isRedirectBase(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === '';
}

function isWebhook(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)));
}
