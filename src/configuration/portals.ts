import { resolve } from 'node:path';
import type * as v from 'valibot';
import { messageOf } from '../core/failure.ts';
import type { PortalPolicy } from '../core/grants/login-end.ts';
import type { Named } from '../core/name.ts';
import type { ApplyMethod } from '../core/portals/identity.ts';
import { Secret } from '../core/secret.ts';
import { parseClientKey } from '../portal/oauth2/client-key.ts';
import type { OAuth2Settings } from '../portal/oauth2/settings.ts';
import { CONTAINER_SECRETS, isSystemdCredential, type SecretForm, secretLocation } from '../system/secret-file.ts';
import { readCa } from './file.ts';
import {
  type helperPortalSchema,
  OAUTH2_KEYS,
  type oauth2PortalSchema,
  POLICY_KEYS,
  type portalSchema,
} from './portal-schema.ts';
import type { UsedPreset } from './presets.ts';
import type { ReadingContext } from './reading-context.ts';

/** What every configured portal has. Times are in ms. */
interface AnyPortalConfiguration {
  readonly name: string;
  /** What people call it; left out if the configuration does not say it. */
  readonly title?: string;
  readonly clientId: string;
  /** Where people find the file of the client secret; left out if it comes from no file. */
  readonly secretFile?: string;
  /** How a changed client secret takes effect, as in `CredentialLocation`. */
  readonly appliedBy?: ApplyMethod;
  /** Further CAs to trust, PEM. */
  readonly ca: string[];
  /** The origin of the proxy through which the hub reaches the portal; null for none. */
  readonly proxy: string | null;
  readonly policy: PortalPolicy;
}

/** A portal of the first kind (docs/portal.md), with its secrets and files loaded. */
export interface HelperPortalConfiguration extends AnyPortalConfiguration {
  readonly type: 'helper';
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientSecret: Secret;
  /** `auto`, `off`, or an address to which `/callback/<nonce>` is appended. */
  readonly redirect: string;
  /** As in `OAuth2Settings`. */
  readonly tokenLifetime: number | null;
  /** The revocation endpoint (RFC 7009), on the origin of `baseUrl` or `frontendUrl`; null if there is none. */
  readonly revocationEndpoint: string | null;
}

/** An ordinary OAuth 2.0 authorization server, with its secrets and files loaded. */
export interface OAuth2PortalConfiguration extends AnyPortalConfiguration {
  readonly type: 'oauth2';
  /** Its preset; null if it has none. */
  readonly preset: Named | null;
  readonly settings: OAuth2Settings;
}

/** A configured portal. */
export type PortalConfiguration = HelperPortalConfiguration | OAuth2PortalConfiguration;

/** What is needed to read the portals. */
export interface PortalContext extends ReadingContext {
  /** The presets of the portals, by their names. */
  readonly presets: ReadonlyMap<string, UsedPreset>;
  /** The keys whose values are not valid, and which the tables therefore lack. */
  readonly invalidKeys: ReadonlySet<string>;
}

type PortalTable = v.InferOutput<typeof portalSchema>;
type HelperTable = v.InferOutput<typeof helperPortalSchema>;
type OAuth2Table = v.InferOutput<typeof oauth2PortalSchema>;

/** Reads all tables `[portals.NAME]`. What can't be read is reported and left empty. */
export function readPortals(
  tables: Readonly<Record<string, PortalTable>>,
  context: PortalContext,
): Promise<PortalConfiguration[]> {
  return Promise.all(
    Object.entries(tables).map(async ([name, table]): Promise<PortalConfiguration> => {
      const common = await readCommon(name, table, context);
      if (table.type === 'oauth2') return readOAuth2Portal(name, table, common, context);
      return {
        ...common,
        type: 'helper',
        baseUrl: table.base_url,
        frontendUrl: table.frontend_url,
        clientSecret: (await readOptionalSecret(name, 'client_secret_file', table.client_secret_file, context)) ?? NONE,
        redirect: table.redirect,
        tokenLifetime: table.token_lifetime ?? null,
        revocationEndpoint: checkRevocationEndpoint(name, table, context),
      };
    }),
  );
}

/** Stands for a secret that could not be read, which is reported. */
const NONE = new Secret('');

async function readCommon(name: string, table: PortalTable, context: PortalContext): Promise<AnyPortalConfiguration> {
  const { directory, credentialsDirectory: credentials } = context;
  const { client_secret_file: secretFile } = table;
  return {
    name,
    ...(table.title !== undefined && { title: table.title }),
    clientId: table.client_id,
    ...(secretFile !== undefined && {
      secretFile: secretLocation(secretFile, directory, credentials),
      appliedBy: applyMethod(secretFile, credentials),
    }),
    ca: await readOptionalCa(table.ca_file, directory).catch((error: Error) => {
      context.report(`portals.${name}.ca_file`, error.message);
      return [];
    }),
    proxy: table.proxy ?? null,
    policy: takeMembers(table, POLICY_KEYS),
  };
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** Some keys of a table as members of a domain value: in camelCase, and null in place of a key that is left out. */
type Members<Table> = {
  readonly [Key in keyof Table as CamelCase<Key & string>]-?: undefined extends Table[Key]
    ? Exclude<Table[Key], undefined> | null
    : Table[Key];
};

/** @param keys those to take; their values do not matter */
function takeMembers<Table extends object, Keys extends object>(
  table: Table,
  keys: Keys,
): Members<Pick<Table, keyof Keys & keyof Table>> {
  const values = new Map(Object.entries(table));
  const camelCase = (key: string) => key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const members = Object.keys(keys).map((key) => [camelCase(key), values.get(key) ?? null]);
  return Object.fromEntries(members) as Members<Pick<Table, keyof Keys & keyof Table>>;
}

function applyMethod(secretFile: string, credentials: string | undefined): ApplyMethod {
  if (!isSystemdCredential(secretFile, credentials)) return 'reload';
  return credentials === CONTAINER_SECRETS ? 'new_start' : 'service_restart';
}

async function readOAuth2Portal(
  name: string,
  table: OAuth2Table,
  common: AnyPortalConfiguration,
  context: PortalContext,
): Promise<OAuth2PortalConfiguration> {
  const used = context.presets.get(name);
  checkCombination(name, table, used, context);
  checkParameters(name, table, context);
  const key = await readOptionalSecret(name, 'client_key_file', table.client_key_file, context, 'text');
  const headers = await Promise.all(
    Object.entries(table.headers).map(async ([header, value]): Promise<[string, Secret]> => {
      if (typeof value === 'string') return [header, new Secret(value)];
      return [header, (await readOptionalSecret(name, `headers.${header}`, value.file, context)) ?? NONE];
    }),
  );
  return {
    ...common,
    type: 'oauth2',
    preset: used === undefined ? null : { name: used.preset.name, title: used.preset.title },
    settings: {
      ...takeMembers(table, OAUTH2_KEYS),
      endpoints: {
        authorization: table.authorization_endpoint ?? null,
        token: table.token_endpoint ?? null,
        deviceAuthorization: table.device_authorization_endpoint ?? null,
        revocation: table.revocation_endpoint ?? null,
      },
      clientSecret: await readOptionalSecret(name, 'client_secret_file', table.client_secret_file, context),
      clientKey:
        key === null
          ? null
          : await parseClientKey(key.reveal()).catch((error: unknown) => {
              context.report(`portals.${name}.client_key_file`, messageOf(error));
              return null;
            }),
      defaultScope: used?.preset.scope ?? null,
      headers: Object.fromEntries(headers),
      readsErrorsOfSuccess: true,
      readAnswer: used?.readAnswer ?? null,
      protocol: used?.protocol ?? {},
    },
  };
}

/** The parameters whose values the hub chooses. */
const OWN_PARAMETERS = new Set([
  ...['client_id', 'response_type', 'redirect_uri', 'state', 'code_challenge', 'code_challenge_method'],
  ...['grant_type', 'code', 'code_verifier', 'device_code', 'refresh_token'],
]);

/** Reports parameters that would replace the hub's own. */
function checkParameters(name: string, table: OAuth2Table, context: PortalContext): void {
  for (const key of ['authorization_params', 'token_params'] as const) {
    for (const parameter of Object.keys(table[key])) {
      if (!OWN_PARAMETERS.has(parameter)) continue;
      context.report(`portals.${name}.${key}.${parameter}`, 'is a parameter that the hub sets itself; remove it');
    }
  }
}

/** Reports keys that are missing, or serve nothing, because of the values of others. */
function checkCombination(
  name: string,
  table: OAuth2Table,
  used: UsedPreset | undefined,
  context: PortalContext,
): void {
  const missing = (key: string, why: string) => context.report(`portals.${name}.${key}`, `is missing; ${why}`);
  const { issuer, login, client_auth: clientAuth } = table;
  if (table.variables !== undefined && used === undefined)
    context.report(`portals.${name}.variables`, 'needs a preset; remove it, or add the key preset');
  if (issuer === undefined && !context.invalidKeys.has(`portals.${name}.issuer`)) {
    const isDevice = table.device_authorization_endpoint !== undefined;
    const isRedirect = table.authorization_endpoint !== undefined;
    if (table.token_endpoint === undefined) missing('token_endpoint', 'add it, or the issuer of the portal');
    if (login === 'device' && !isDevice) missing('device_authorization_endpoint', 'login = "device" needs it');
    if ((login === 'redirect' || login === 'paste') && !isRedirect)
      missing('authorization_endpoint', `login = "${login}" needs it`);
    if (login === 'auto' && !isDevice && !isRedirect)
      missing('authorization_endpoint', 'add it, or device_authorization_endpoint, or the issuer of the portal');
  }
  if (login === 'paste' && table.redirect_uri === undefined)
    missing('redirect_uri', 'login = "paste" needs the one that is registered at the portal');
  if (clientAuth === 'private_key_jwt' && table.client_key_file === undefined)
    missing('client_key_file', 'client_auth = "private_key_jwt" needs it');
  const needsSecret = clientAuth === 'basic' || used?.preset.client_secret === 'required';
  if (needsSecret && table.client_secret_file === undefined && table.client_key_file === undefined)
    missing('client_secret_file', used === undefined ? 'client_auth = "basic" needs it' : 'this cloud wants a secret');
}

/** A secret of a file; null if none is configured, or if it can't be read, which is reported. */
async function readOptionalSecret(
  name: string,
  key: string,
  file: string | undefined,
  context: ReadingContext,
  form?: SecretForm,
): Promise<Secret | null> {
  if (file === undefined) return null;
  const path = `portals.${name}.${key}`;
  return context.readSecret(path, file, form).catch((error: Error) => {
    context.report(path, error.message);
    return null;
  });
}

/** The refresh token is only sent to the two configured origins. Reports an endpoint elsewhere, and returns null. */
function checkRevocationEndpoint(
  name: string,
  { revocation_endpoint, base_url, frontend_url }: HelperTable,
  context: PortalContext,
): string | null {
  if (revocation_endpoint === undefined) return null;
  const { origin } = new URL(revocation_endpoint);
  if (origin === base_url || origin === frontend_url) return revocation_endpoint;
  const problem = `must be on the origin of base_url or frontend_url (found ${JSON.stringify(origin)})`;
  context.report(`portals.${name}.revocation_endpoint`, problem);
  return null;
}

async function readOptionalCa(file: string, directory: string): Promise<string[]> {
  return file === '' ? [] : [await readCa(resolve(directory, file))];
}
