import { type Cloud, type CloudOperation, type CloudProtocol, PLACEHOLDER } from '../clouds/cloud.ts';
import { isTable, type RawTable } from './environment-overrides.ts';

/** A preset together with a configuration table. */
export type ResolvedPreset =
  | {
      readonly ok: true;
      /** The configuration table with what the preset fills in. It keeps the keys `preset` and `variables`. */
      readonly table: RawTable;
      readonly protocol: CloudProtocol;
    }
  | {
      readonly ok: false;
      /** Keys, relative to the table, each with its problem: `variables.project_id`, "must be … (found …)". */
      readonly problems: ReadonlyMap<string, string>;
    };

/** Tables that are merged key by key: the others are values, which the configuration replaces. */
const MERGED = new Set(['authorization_params', 'token_params', 'headers', 'error_codes']);

/** The operations whose requests have `token_params`. */
const TOKEN_REQUESTS = new Set(['code', 'refresh', 'device_token']);

/**
 * Fills a configuration table `[portals.NAME]` in from a preset. What the table says wins, also over the protocol part:
 * its `client_auth` and `token_params` hold for all requests, and its `issuer` replaces the endpoints of the preset.
 * Variables are filled in only in the texts of the preset.
 * @param table as in the configuration file, not validated
 */
export function resolvePreset(preset: Cloud, table: RawTable): ResolvedPreset {
  const { values, problems } = readVariables(preset, table['variables']);
  if (problems.size > 0) return { ok: false, problems };
  const clientId = table['client_id'] ?? preset.settings.client_id;
  // An invalid client_id is reported by the validation of the merged table.
  if (typeof clientId === 'string') values.set('client_id', clientId);
  const settings = Object.entries(fillIn(preset.settings, values)).filter(([key]) => !isReplaced(key, table));
  const merged: Record<string, unknown> = { type: 'oauth2', ...Object.fromEntries(settings), ...table };
  for (const [key, value] of settings) {
    const own = table[key];
    if (MERGED.has(key) && isTable(value) && isTable(own)) merged[key] = { ...value, ...own };
  }
  return {
    ok: true,
    table: merged,
    protocol: withoutOverridden(fillIn(preset.protocol ?? {}, values), table),
  };
}

/** Whether an endpoint of the preset goes, because the table names another authorization server. */
function isReplaced(key: string, table: RawTable): boolean {
  if (Object.hasOwn(table, 'issuer')) return key.endsWith('_endpoint');
  // A revocation would send the refresh token of the one to the other.
  return key === 'revocation_endpoint' && Object.hasOwn(table, 'token_endpoint');
}

function readVariables(preset: Cloud, given: unknown) {
  const values = new Map<string, string>();
  const problems = new Map<string, string>();
  const known = Object.entries(preset.variables ?? {});
  if (given !== undefined && !isTable(given)) problems.set('variables', 'must be a table');
  const own = isTable(given) ? given : {};
  for (const name of Object.keys(own)) {
    if (known.some(([key]) => key === name)) continue;
    const names = known.map(([key]) => key).join(', ') || 'none';
    problems.set(`variables.${name}`, `unknown key; the preset "${preset.name}" has these variables: ${names}`);
  }
  for (const [name, { description, pattern, default: usual }] of known) {
    const value = own[name] ?? usual;
    if (value === undefined) problems.set(`variables.${name}`, `is missing; it must be ${description}`);
    else if (typeof value === 'string' && new RegExp(`^(?:${pattern})$`).test(value)) values.set(name, value);
    else
      problems.set(`variables.${name}`, `must be ${description} (found ${`${JSON.stringify(value)}`.slice(0, 100)})`);
  }
  return { values, problems };
}

/** The value with its placeholders filled in. One without a value stays: only `{client_id}` can lack one. */
function fillIn<T>(value: T, values: ReadonlyMap<string, string>): T;
function fillIn(value: unknown, values: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string')
    return value.replaceAll(PLACEHOLDER, (found, name: string) => values.get(name) ?? found);
  if (Array.isArray(value)) return value.map((item) => fillIn(item, values));
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, values)]));
}

function withoutOverridden({ operations, ...rest }: CloudProtocol, table: RawTable): CloudProtocol {
  if (operations === undefined) return rest;
  const kept = Object.entries(operations).map(([name, operation]) => [
    name,
    withoutOverriddenParts(operation, table, TOKEN_REQUESTS.has(name)),
  ]);
  return { ...rest, operations: Object.fromEntries(kept) };
}

function withoutOverriddenParts(operation: CloudOperation, table: RawTable, hasTokenParams: boolean): CloudOperation {
  const { client_auth, params, ...rest } = operation;
  // A bearer token is no kind of client authentication that the configuration could name.
  const keepsClientAuth = client_auth === 'bearer' || !Object.hasOwn(table, 'client_auth');
  return {
    ...rest,
    ...(client_auth !== undefined && keepsClientAuth && { client_auth }),
    ...(params !== undefined && { params: hasTokenParams ? omitKeys(params, table['token_params']) : params }),
  };
}

function omitKeys(entries: Readonly<Record<string, string>>, overriding: unknown): Record<string, string> {
  if (!isTable(overriding)) return { ...entries };
  return Object.fromEntries(Object.entries(entries).filter(([key]) => !Object.hasOwn(overriding, key)));
}
