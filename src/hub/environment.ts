import { portalSchema } from './configuration-schema.ts';

/** A configuration as TOML gives it. */
export type RawTable = Record<string, unknown>;

const SECTIONS = ['hub', 'lan', 'pairing'] as const;
const BOOLEANS: readonly string[] = ['lan.mdns', 'pairing.on_start'];
const NUMBERS: readonly string[] = ['lan.http_port', 'lan.https_port'];

/**
 * Puts the environment's overrides into a configuration: `LATCHKEY_LAN_HTTPS_PORT` is `lan.https_port`,
 * `LATCHKEY_PORTALS_HOME_BASE_URL` is `portals.home.base_url`. Numbers, booleans and comma-separated lists are taken
 * where the key wants one.
 */
export function withEnvironment(raw: RawTable, env: NodeJS.ProcessEnv): RawTable {
  const result: RawTable = { ...raw };
  for (const [variable, value] of Object.entries(env)) {
    if (value === undefined) continue;
    const path = keyOf(variable);
    if (path === null) continue;
    let table = result;
    for (const name of path.slice(0, -1)) table = table[name] = isTable(table[name]) ? { ...table[name] } : {};
    const key = path.at(-1) ?? '';
    table[key] = interpreted(path, value);
  }
  return result;
}

/** The environment variable that sets this key, or the list or table that it is in. */
export function overriding(key: string, env: NodeJS.ProcessEnv): string | undefined {
  return Object.keys(env).find((variable) => {
    const own = keyOf(variable);
    return own !== null && `${key}.`.startsWith(`${own.join('.')}.`);
  });
}

function keyOf(variable: string): string[] | null {
  const name = variable.startsWith('LATCHKEY_') ? variable.slice('LATCHKEY_'.length).toLowerCase() : '';
  for (const section of SECTIONS) if (name.startsWith(`${section}_`)) return [section, name.slice(section.length + 1)];
  if (!name.startsWith('portals_')) return null;
  const rest = name.slice('portals_'.length);
  const key = Object.keys(portalSchema.entries).find((candidate) => rest.endsWith(`_${candidate}`));
  return key === undefined ? ['portals', rest] : ['portals', rest.slice(0, -key.length - 1), key];
}

function interpreted(path: string[], value: string): unknown {
  const key = path.join('.');
  if (key === 'lan.listen') return value.split(',').map((address) => address.trim());
  if (BOOLEANS.includes(key) && /^(true|false)$/.test(value)) return value === 'true';
  return NUMBERS.includes(key) && /^\d+$/.test(value) ? Number(value) : value;
}

function isTable(value: unknown): value is RawTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
