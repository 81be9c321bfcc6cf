import * as v from 'valibot';
import { helperPortalSchema, oauth2PortalSchema } from './portal-schema.ts';
import { applianceSchema, connectionSchema } from './schema.ts';

/** A configuration as parsed from TOML, before validation. */
export type RawTable = Record<string, unknown>;

const SECTIONS = ['hub', 'store', 'lan', 'pairing', 'notify', 'metrics', 'ingress', 'local'] as const;
/** Sections with one table for each name, and the schema of such a table. */
const NAMED_SECTIONS = { connections: connectionSchema, appliances: applianceSchema } as const;
/** The keys of all kinds of portals. */
export const PORTAL_KEYS = { ...helperPortalSchema.entries, ...oauth2PortalSchema.entries };
const LIST_KEYS: readonly string[] = ['lan.listen', 'notify.command', 'appliances.NAME.connections'];
const BOOLEAN_KEYS: readonly string[] = [
  'lan.mdns',
  'pairing.on_start',
  'appliances.NAME.ignore_scope',
  ...Object.entries(PORTAL_KEYS).flatMap(([key, schema]) => (v.is(schema, true) ? `portals.NAME.${key}` : [])),
];
const NUMBER_KEYS: readonly string[] = ['lan.http_port', 'lan.https_port', 'local.port'];

/**
 * Applies the overrides of the environment to a configuration: `LATCHKEY_LAN_HTTPS_PORT` is `lan.https_port`,
 * `LATCHKEY_PORTALS_HOME_BASE_URL` is `portals.home.base_url`, `LATCHKEY_APPLIANCES_HEAT_PUMP_SCOPE` is
 * `appliances.heat-pump.scope`. Values are parsed as numbers, booleans or comma-separated lists if the key has that
 * type.
 */
export function applyEnvironment(raw: RawTable, env: NodeJS.ProcessEnv): RawTable {
  const result: RawTable = { ...raw };
  for (const [variable, value] of Object.entries(env)) {
    if (value === undefined) continue;
    const path = keyPathOf(variable);
    if (path === null) continue;
    let table = result;
    for (const name of path.slice(0, -1)) table = table[name] = isTable(table[name]) ? { ...table[name] } : {};
    const key = path.at(-1) ?? '';
    table[key] = parseOverrideValue(path, value);
  }
  return result;
}

/** The environment variable that sets this key, or the list or table that contains it. */
export function overridingVariable(key: string, env: NodeJS.ProcessEnv): string | undefined {
  return Object.keys(env).find((variable) => {
    const path = keyPathOf(variable);
    return path !== null && `${key}.`.startsWith(`${path.join('.')}.`);
  });
}

function keyPathOf(variable: string): string[] | null {
  const name = variable.startsWith('LATCHKEY_') ? variable.slice('LATCHKEY_'.length).toLowerCase() : '';
  for (const section of SECTIONS) if (name.startsWith(`${section}_`)) return [section, name.slice(section.length + 1)];
  if (name.startsWith('portals_')) return ['portals', ...splitTableKey(name.slice('portals_'.length), PORTAL_KEYS)];
  for (const [section, { entries }] of Object.entries(NAMED_SECTIONS)) {
    if (!name.startsWith(`${section}_`)) continue;
    const [table = '', ...key] = splitTableKey(name.slice(section.length + 1), entries);
    // The name of a connection or an appliance has no "_", and the name of a variable has no "-".
    return [section, table.replaceAll('_', '-'), ...key];
  }
  return null;
}

/** Splits into the name of a table and the key in it: the longest key that fits, or the last word if no key fits. */
function splitTableKey(rest: string, keys: object): string[] {
  const matches = Object.keys(keys).filter((candidate) => rest.endsWith(`_${candidate}`));
  const [key] = matches.sort((a, b) => b.length - a.length);
  // An unknown last word is passed on as a key, so that validation rejects it.
  const cut = key === undefined ? rest.lastIndexOf('_') : rest.length - key.length - 1;
  return cut < 1 ? [rest] : [rest.slice(0, cut), rest.slice(cut + 1)];
}

function parseOverrideValue(path: string[], value: string): unknown {
  const [section, , last] = path;
  const key = last === undefined ? path.join('.') : `${section}.NAME.${last}`;
  if (LIST_KEYS.includes(key)) return value.split(',').map((part) => part.trim());
  if (BOOLEAN_KEYS.includes(key) && /^(true|false)$/.test(value)) return value === 'true';
  return NUMBER_KEYS.includes(key) && /^\d+$/.test(value) ? Number(value) : value;
}

/** Whether a value of a configuration is a table. */
export function isTable(value: unknown): value is RawTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
