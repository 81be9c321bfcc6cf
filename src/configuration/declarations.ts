import { resolve } from 'node:path';
import type * as v from 'valibot';
import { type ClientCredentials, checkClientId, type DeclaredAppliance } from '../core/appliances/appliance.ts';
import type { DeclaredConnection } from '../core/connections/connection.ts';
import { checkScope, sameScope } from '../core/connections/scope.ts';
import { Failure, messageOf } from '../core/failure.ts';
import { checkName } from '../core/name.ts';
import { readBoundedFile } from '../system/bounded-file.ts';
import { parseJwkSet } from '../system/jwk-set.ts';
import type { readSecret } from '../system/secret-file.ts';
import { sha256 } from '../system/secret-hash.ts';
import type { applianceSchema, connectionSchema } from './schema.ts';

/** What is needed to read declared connections and appliances. */
interface DeclarationContext {
  /** The names of the configured portals. */
  readonly portals: readonly string[];
  /** The base of relative paths. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentialsDirectory: string | undefined;
  /** Reads a file with a secret. */
  readonly readSecret: typeof readSecret;
  /** Creates the failure for an invalid key. */
  invalidKey(key: string, problem: string): Failure;
  /** Called with the error of a connection or an appliance, which is then left out. */
  report(error: Failure): void;
}

/** A table `[connections.NAME]`. */
type ConnectionSection = v.InferOutput<typeof connectionSchema>;
/** A table `[appliances.NAME]`. */
type ApplianceSection = v.InferOutput<typeof applianceSchema>;

/** The fewest characters of a secret that a maker chose: a shorter one is easy to guess. */
const MIN_SECRET_LENGTH = 16;
/** VSCHAR of RFC 6749, appendix A.2: client libraries encode other characters in different ways. */
const SECRET_CHARACTERS = /^[\x20-\x7e]+$/;
/** The most bytes of a JWK Set. */
const MAX_JWKS_BYTES = 65_536;

/** Reads all tables `[connections.NAME]`. A connection with an error is reported and left out. */
export function readDeclaredConnections(
  tables: Readonly<Record<string, ConnectionSection>>,
  context: DeclarationContext,
): DeclaredConnection[] {
  return Object.entries(tables).flatMap(([name, table]) => {
    const key = `connections.${name}`;
    try {
      withKeySync(context, 'connections', () => checkName('connection', name));
      const scope = withKeySync(context, `${key}.scope`, () => checkScope(table.scope));
      const portal = withKeySync(context, `${key}.portal`, () => checkPortal(table.portal ?? null, context.portals));
      return [{ name, scope, portal }];
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      context.report(error);
      return [];
    }
  });
}

function withKeySync<T>(context: DeclarationContext, key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw context.invalidKey(key, messageOf(error));
  }
}

/**
 * Reads all tables `[appliances.NAME]`, with the files that they name. An appliance with an error is reported and left
 * out.
 * @param connections the declared connections
 */
export async function readDeclaredAppliances(
  tables: Readonly<Record<string, ApplianceSection>>,
  connections: readonly DeclaredConnection[],
  context: DeclarationContext,
): Promise<DeclaredAppliance[]> {
  const declarations: DeclaredAppliance[] = [];
  for (const [name, table] of Object.entries(tables)) {
    try {
      const declaration = await readDeclaredAppliance(name, table, context);
      checkConnections(declaration, tables, connections, context);
      const other = declarations.find(({ clientId }) => clientId === declaration.clientId);
      if (other !== undefined) {
        const problem = `${JSON.stringify(other.clientId)} is also the client_id of ${other.name}; choose another one`;
        throw context.invalidKey(`appliances.${name}.client_id`, problem);
      }
      declarations.push(declaration);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      context.report(error);
    }
  }
  return declarations;
}

async function readDeclaredAppliance(
  name: string,
  table: ApplianceSection,
  context: DeclarationContext,
): Promise<DeclaredAppliance> {
  const withKey = async <T>(key: string, read: () => T | Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw context.invalidKey(key, messageOf(error));
    }
  };
  await withKey('appliances', () => checkName('appliance', name));
  const key = `appliances.${name}`;
  return {
    name,
    connections: await withKey(`${key}.connections`, () => declaredConnections(table)),
    clientId: await withKey(`${key}.client_id`, () => checkClientId(table.client_id ?? name)),
    scope: await withKey(`${key}.scope`, () => checkScope(table.scope)),
    portal: await withKey(`${key}.portal`, () => checkPortal(table.portal ?? null, context.portals)),
    ...(table.ignore_scope && { ignoresScope: true }),
    credentials: await readCredentials(key, table, context, withKey),
  };
}

/** @throws Error */
function declaredConnections({ connection, connections }: ApplianceSection): readonly string[] {
  if (connections === undefined) return connection === undefined ? [] : [connection];
  if (connection === undefined) return [...new Set(connections)];
  throw new Error('there is also connection; name all of them in connections, and remove the other key');
}

/**
 * Checks that the connections of a declared appliance are declared too, and have its portal and scope if it names them.
 * @throws Failure as `invalidKey`
 */
function checkConnections(
  declaration: DeclaredAppliance,
  tables: Readonly<Record<string, ApplianceSection>>,
  connections: readonly DeclaredConnection[],
  context: DeclarationContext,
): void {
  const { name } = declaration;
  const key = `appliances.${name}`;
  if (declaration.connections.length === 0) {
    if (!connections.some((declared) => declared.name === name)) return;
    const problem = `has no connection, but there is a section [connections.${name}]; add connection = "${name}", or rename one of the two`;
    throw context.invalidKey(key, problem);
  }
  for (const connection of declaration.connections)
    checkConnection({ ...declaration, connection }, tables, connections, context);
}

function checkConnection(
  { name, connection, portal, scope }: DeclaredAppliance & { readonly connection: string },
  tables: Readonly<Record<string, ApplianceSection>>,
  connections: readonly DeclaredConnection[],
  { portals, invalidKey }: DeclarationContext,
): void {
  const key = `appliances.${name}`;
  const owner = Object.hasOwn(tables, connection) ? tables[connection] : undefined;
  const declared =
    connections.find((one) => one.name === connection) ??
    (owner !== undefined && owner.connection === undefined && owner.connections === undefined
      ? { portal: owner.portal ?? null, scope: owner.scope ?? null }
      : undefined);
  if (declared === undefined) {
    const problem = `must be the name of a section [connections.NAME], or of an appliance without a connection (found ${JSON.stringify(connection.slice(0, 80))})`;
    throw invalidKey(`${key}.connection${tables[name]?.connections === undefined ? '' : 's'}`, problem);
  }
  const [first = null] = portals;
  if (portal !== null && portal !== (declared.portal ?? first)) {
    const problem = `is ${JSON.stringify(portal)}, and the connection ${connection} is at ${JSON.stringify(declared.portal ?? first)}; leave it out`;
    throw invalidKey(`${key}.portal`, problem);
  }
  if (scope !== null && !sameScope(scope, declared.scope)) {
    const problem = `is ${JSON.stringify(scope)}, and the connection ${connection} has ${JSON.stringify(declared.scope ?? '')}; leave it out`;
    throw invalidKey(`${key}.scope`, problem);
  }
}

async function readCredentials(
  key: string,
  { secret_file, jwks_file }: ApplianceSection,
  context: DeclarationContext,
  withKey: <T>(key: string, read: () => Promise<T>) => Promise<T>,
): Promise<ClientCredentials> {
  if (secret_file !== undefined && jwks_file !== undefined) {
    throw context.invalidKey(key, 'has both secret_file and jwks_file; remove one of them');
  }
  if (secret_file !== undefined) return withKey(`${key}.secret_file`, () => readSecretHash(secret_file, context));
  if (jwks_file !== undefined) return withKey(`${key}.jwks_file`, () => readJwks(jwks_file, context));
  throw context.invalidKey(key, 'has neither secret_file nor jwks_file; add one of them');
}

/** @throws Error with a message that completes "KEY: …", as the functions below */
function checkPortal(portal: string | null, portals: readonly string[]): string | null {
  if (portal === null || portals.includes(portal)) return portal;
  const found = JSON.stringify(portal.slice(0, 80));
  if (portals.length === 0) throw new Error(`no portal is configured; add a section [portals.NAME] (found ${found})`);
  throw new Error(`must be the name of a configured portal: ${portals.join(', ')} (found ${found})`);
}

async function readSecretHash(
  file: string,
  { directory, credentialsDirectory: credentials, readSecret }: DeclarationContext,
): Promise<ClientCredentials> {
  const secret = (await readSecret(file, directory, credentials)).reveal();
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new Error(
      `the secret must have ${MIN_SECRET_LENGTH} or more characters (found ${secret.length}); best are 256 random bits (openssl rand -hex 32)`,
    );
  }
  if (!SECRET_CHARACTERS.test(secret))
    throw new Error('the secret contains a character that is not printable ASCII; make another secret without it');
  return { kind: 'secret', hash: sha256(secret) };
}

async function readJwks(file: string, { directory }: DeclarationContext): Promise<ClientCredentials> {
  const path = resolve(directory, file);
  const text = await readBoundedFile(path, MAX_JWKS_BYTES).catch((error: unknown) => {
    const advice = error instanceof RangeError ? error.message : 'check that it exists and that this user may read it';
    throw new Error(`${path} can't be read (${advice}); paths are relative to ${directory}`);
  });
  const jwkSet = parseJwkSet(tryParseJson(text));
  if (jwkSet.kind === 'unusable') throw new Error(`${path} ${jwkSet.reason}`);
  return { kind: 'keys', keys: jwkSet.keys };
}

/** Parses JSON; undefined if the text is not JSON. */
function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
