import { isIP } from 'node:net';
import * as v from 'valibot';
import { isLoopbackHost } from '../system/addresses.ts';
import { helperPortalSchema, oauth2PortalSchema, portalSchema } from './portal-schema.ts';
import { duration, text } from './schema-parts.ts';
import { parseSocketAddress } from './values.ts';

/**
 * The schema of the configuration file. The message of every check completes "KEY: must be …"; validation.ts adds the
 * key and the value that it found.
 */
const PORT = 'a port number from 0 to 65535, where 0 is any free port';
const port = v.pipe(v.number(PORT), v.integer(PORT), v.minValue(0, PORT), v.maxValue(65_535, PORT));

const INSTANCE_NAME = 'a name of 1 to 63 bytes, because it is the mDNS instance name';
const instanceName = v.pipe(text(INSTANCE_NAME), v.maxBytes(63, INSTANCE_NAME));

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

/** An address to listen on, or "" for none. */
const socketAddress = (expected: string) =>
  v.pipe(
    v.string(expected),
    v.check((value) => value === '' || parseSocketAddress(value) !== null, expected),
    v.transform(parseSocketAddress),
  );
const METRICS = 'an IP address and a port, such as "127.0.0.1:9480" or "[::1]:9480", or "" for none';
const INGRESS = 'an IP address and a port, such as "0.0.0.0:8099" or "[::]:8099", or "" for none';

const PROXY = 'the IP address of the reverse proxy, such as "172.30.32.2"';
const proxyAddress = v.pipe(
  v.string(PROXY),
  v.check((value) => isIP(value) !== 0, PROXY),
);

const COMMAND = 'a list of strings, a program and its arguments, such as ["/etc/latchkey/notify", "--urgent"]';
const command = v.pipe(
  v.array(v.string(COMMAND), COMMAND),
  v.check((value) => value[0] !== undefined && value[0] !== '' && !value.some((part) => part.includes('\0')), COMMAND),
);

const WEBHOOK = 'an https URL such as "https://notify.example/latchkey"; http only for a loopback address';
const webhook = v.pipe(v.string(WEBHOOK), v.check(isWebhook, WEBHOOK));

const BOOLEAN = 'true or false';
const PATH = 'a path';
const SECRET_FILE = 'a path, or the name of a systemd credential';
const SCOPE = 'a string such as "Monitoring RemoteControl"';
const PORTAL = 'the name of a section [portals.NAME]';
const CONNECTION = 'the name of a section [connections.NAME]';
const CONNECTIONS = 'a list of names of sections [connections.NAME], such as ["tado", "netatmo"]';
const CLIENT_ID = '1 to 100 characters of A-Z, a-z, 0-9 and "-._~"';
const ADDRESS = '"auto", an IP address, or the name of an interface';
const LIFETIME = 'a duration from "1m" to "24h"';
const POLL = 'a duration from "5s" to "10s"';
const TABLE = 'a table';

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
    connections: v.optional(v.pipe(v.array(text(CONNECTIONS), CONNECTIONS), v.minLength(1, CONNECTIONS))),
    scope: v.optional(v.string(SCOPE)),
    portal: v.optional(text(PORTAL)),
    ignore_scope: v.optional(v.boolean(BOOLEAN), false),
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

const store = v.strictObject({ postgres_file: v.optional(text(SECRET_FILE)) }, TABLE);

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

const metrics = v.strictObject({ listen: v.optional(socketAddress(METRICS), '127.0.0.1:9480') }, TABLE);

const USERS = 'a list of login names or ids of users of the reverse proxy, such as ["anna"]';
const HOSTS = 'a list of host names without a port, in lower case, such as ["homeassistant.local"]';

const hostNames = v.pipe(
  v.array(v.string(HOSTS), HOSTS),
  v.check((names) => names.every((name) => /^[a-z0-9._-]+$/.test(name)), HOSTS),
);

const ingress = v.strictObject(
  {
    listen: v.optional(socketAddress(INGRESS), ''),
    from: v.optional(proxyAddress, '172.30.32.2'),
    users: v.optional(v.array(text(USERS), USERS), []),
    hosts: v.optional(hostNames, []),
  },
  TABLE,
);

const local = v.strictObject({ port: v.optional(port) }, TABLE);

const LANGUAGE = '"en" or "de"';
const notify = v.strictObject(
  {
    command: v.optional(command),
    webhook: v.optional(webhook),
    webhook_secret_file: v.optional(text(SECRET_FILE)),
    language: v.optional(v.picklist(['en', 'de'], LANGUAGE), 'en'),
  },
  TABLE,
);

export const configurationSchema = v.strictObject({
  hub: v.optional(hub, {}),
  store: v.optional(store, {}),
  lan: v.optional(lan, {}),
  portals: v.optional(v.record(v.string(), portalSchema, TABLE), {}),
  pairing: v.optional(pairing, {}),
  connections: v.optional(v.record(v.string(), connectionSchema, TABLE), {}),
  appliances: v.optional(v.record(v.string(), applianceSchema, TABLE), {}),
  notify: v.optional(notify, {}),
  metrics: v.optional(metrics, {}),
  ingress: v.optional(ingress, {}),
  local: v.optional(local, {}),
});

/**
 * The keys that the table of a section may have.
 * @param type the kind of a portal
 */
export function sectionEntries(section: string, type?: unknown): object {
  const named = { connections: connectionSchema, appliances: applianceSchema };
  const sections = { hub, store, lan, pairing, notify, metrics, ingress, local, ...named };
  const found = Object.entries(sections).find(([name]) => name === section)?.[1].entries;
  return found ?? (type === 'oauth2' ? oauth2PortalSchema : helperPortalSchema).entries;
}

function isWebhook(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)));
}
