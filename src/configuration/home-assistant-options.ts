import { extname } from 'node:path';
import { Secret } from '../core/secret.ts';
import { withoutSurroundingSpace } from '../system/secret-file.ts';
import { isTable, type RawTable } from './environment-overrides.ts';

/**
 * The options of the Home Assistant app, which the Supervisor writes to `/data/options.json` before it starts the app.
 * They are a flat selection of the configuration's keys. Here they become the same table as the TOML file, so that both
 * are validated by the same rules.
 */
export interface AppOptions {
  readonly table: RawTable;
  /** The client secrets by the names that stand in the table in place of a file. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** The problem of each invalid option, by the option's name. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The key of the configuration for each option. */
const OPTIONS: Readonly<Record<string, string>> = {
  name: 'hub.name',
  address: 'lan.address',
  http_port: 'lan.http_port',
  https_port: 'lan.https_port',
  notify_webhook: 'notify.webhook',
  page_users: 'ingress.users',
  portals: 'portals',
};

/** The options of a portal that are keys of its table. */
const PORTAL_KEYS = [
  ...['preset', 'base_url', 'frontend_url'],
  ...['issuer', 'authorization_endpoint', 'token_endpoint', 'device_authorization_endpoint'],
  ...['client_id', 'client_auth', 'login', 'redirect_uri', 'retry_lost_answer'],
];
/** The variables of the presets, each of which has only one. */
const VARIABLES = ['project_id', 'region', 'tenant'];
const PORTAL_OPTIONS = ['name', ...PORTAL_KEYS, ...VARIABLES, 'client_secret'];

/** As in the schema of the app's options. */
const PORTAL_NAME = /^[a-z][a-z0-9-]{0,30}$/;
const NAME_PROBLEM = 'must begin with a letter, and have at most 31 of a-z, 0-9 and "-", such as "home"';

const TOML_ADVICE = "put a latchkey.toml into the app's configuration folder (see the documentation of the app)";

/** Whether a configuration file contains the options of the app. */
export function isAppOptionsFile(path: string): boolean {
  return extname(path) === '.json';
}

/** How messages name the options, before the option and its problem. */
export function appOptionsSource(path: string): string {
  return `the app's options (${path})`;
}

/** @param options the parsed content of the options file */
export function readAppOptions(options: RawTable): AppOptions {
  const problems = new Map<string, string>();
  const secrets = new Map<string, Secret>();
  const table: Record<string, Record<string, unknown>> = {};
  for (const [option, value] of Object.entries(withoutEmpty(options))) {
    const key = Object.hasOwn(OPTIONS, option) ? OPTIONS[option] : undefined;
    if (key === undefined) problems.set(option, unknownOption(Object.keys(OPTIONS)));
    else if (option === 'portals') table['portals'] = readPortalList(value, secrets, problems);
    else {
      const [section = '', name = ''] = key.split('.');
      table[section] = { ...table[section], [name]: value };
    }
  }
  return { table, secrets, problems };
}

function readPortalList(value: unknown, secrets: Map<string, Secret>, problems: Map<string, string>): RawTable {
  if (!Array.isArray(value)) {
    problems.set('portals', 'must be a list');
    return {};
  }
  const portals: RawTable = {};
  for (const [index, entry] of value.entries()) {
    const place = `portals, entry ${index + 1}`;
    if (!isTable(entry)) {
      problems.set(place, 'must be a group of options, beginning with name');
      continue;
    }
    const { name, client_secret: secret, ...rest } = withoutEmpty(entry);
    if (typeof name !== 'string' || !PORTAL_NAME.test(name)) problems.set(`${place}, name`, NAME_PROBLEM);
    else if (Object.hasOwn(portals, name)) {
      problems.set(`portals.${name}`, 'two portals have this name; choose another one for one of them');
    } else portals[name] = readPortal(name, rest, secret, secrets, problems);
  }
  return portals;
}

function readPortal(
  name: string,
  options: RawTable,
  secret: unknown,
  secrets: Map<string, Secret>,
  problems: Map<string, string>,
): RawTable {
  const portal: RawTable = {};
  const variables: RawTable = {};
  for (const [option, value] of Object.entries(options)) {
    if (PORTAL_KEYS.includes(option)) portal[option] = value;
    else if (VARIABLES.includes(option)) variables[option] = value;
    else problems.set(`portals.${name}.${option}`, unknownOption(PORTAL_OPTIONS));
  }
  if (Object.keys(variables).length > 0) portal['variables'] = variables;
  if (secret !== undefined) {
    // Not the value: it would be a secret in a message.
    if (typeof secret !== 'string' || /[\r\n]/.test(withoutSurroundingSpace(secret))) {
      problems.set(`portals.${name}.client_secret`, 'must be a text on one line');
    }
    const place = `option:portals.${name}.client_secret`;
    secrets.set(place, new Secret(String(secret)));
    portal['client_secret_file'] = place;
  }
  return portal;
}

/** A form in Home Assistant gives an empty text for an option that nobody filled in. */
function withoutEmpty(options: RawTable): RawTable {
  const isEmpty = (value: unknown) =>
    value === null || (typeof value === 'string' && withoutSurroundingSpace(value) === '');
  return Object.fromEntries(Object.entries(options).filter(([, value]) => !isEmpty(value)));
}

function unknownOption(allowed: readonly string[]): string {
  return `unknown option; the options are: ${allowed.join(', ')}; for anything else, ${TOML_ADVICE}`;
}

/** Replaces the names of keys in a text by those of their options, which the user sees. */
export function inOptionNames(text: string): string {
  const renamed = Object.entries(OPTIONS).reduce((before, [option, key]) => before.replaceAll(key, option), text);
  return renamed.replaceAll('client_secret_file', 'client_secret').replace('.variables.', '.');
}
