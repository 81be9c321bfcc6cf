import { resolve } from 'node:path';
import type * as v from 'valibot';
import { type ClientCredentials, checkClientId, type DeclaredAppliance } from '../core/appliances/appliance.ts';
import type { DeclaredConnection } from '../core/connections/connection.ts';
import { checkScope, sameScope } from '../core/connections/scope.ts';
import { messageOf } from '../core/failure.ts';
import { checkName } from '../core/name.ts';
import { readBoundedFile, unreadableFileMessage } from '../system/bounded-file.ts';
import { parseJwkSet } from '../system/jwk-set.ts';
import { sha256 } from '../system/secret-hash.ts';
import { parseJson } from './file.ts';
import type { ReadingContext } from './reading-context.ts';
import type { applianceSchema, connectionSchema } from './schema.ts';

/** What is needed to read declared connections and appliances. */
interface DeclarationContext extends ReadingContext {
  /** The names of the configured portals. */
  readonly portals: readonly string[];
}

/** The problem of a key, for which its connection or appliance is left out. */
class KeyProblem extends Error {
  readonly key: string;

  constructor(key: string, problem: string) {
    super(problem);
    this.key = key;
  }
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
      withKey('connections', () => checkName('connection', name));
      const scope = withKey(`${key}.scope`, () => checkScope(table.scope));
      const portal = withKey(`${key}.portal`, () => checkPortal(table.portal ?? null, context.portals));
      return [{ name, scope, portal }];
    } catch (error) {
      reportProblem(error, context);
      return [];
    }
  });
}

/** @throws KeyProblem in place of an Error, whose message fits after the key's name */
function withKey<T>(key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new KeyProblem(key, messageOf(error));
  }
}

function reportProblem(error: unknown, { report }: ReadingContext): void {
  if (!(error instanceof KeyProblem)) throw error;
  report(error.key, error.message);
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
      checkConnections(declaration, tables, connections, context.portals);
      const other = declarations.find(({ clientId }) => clientId === declaration.clientId);
      if (other !== undefined) {
        const problem = `${JSON.stringify(other.clientId)} is also the client_id of ${other.name}; choose another one`;
        throw new KeyProblem(`appliances.${name}.client_id`, problem);
      }
      declarations.push(declaration);
    } catch (error) {
      reportProblem(error, context);
    }
  }
  return declarations;
}

async function readDeclaredAppliance(
  name: string,
  table: ApplianceSection,
  context: DeclarationContext,
): Promise<DeclaredAppliance> {
  withKey('appliances', () => checkName('appliance', name));
  const key = `appliances.${name}`;
  return {
    name,
    connections: withKey(`${key}.connections`, () => declaredConnections(table)),
    clientId: withKey(`${key}.client_id`, () => checkClientId(table.client_id ?? name)),
    scope: withKey(`${key}.scope`, () => checkScope(table.scope)),
    portal: withKey(`${key}.portal`, () => checkPortal(table.portal ?? null, context.portals)),
    ...(table.ignore_scope && { ignoresScope: true }),
    credentials: await readCredentials(key, table, context),
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
 * @throws KeyProblem
 */
function checkConnections(
  declaration: DeclaredAppliance,
  tables: Readonly<Record<string, ApplianceSection>>,
  connections: readonly DeclaredConnection[],
  portals: readonly string[],
): void {
  const { name } = declaration;
  const key = `appliances.${name}`;
  if (declaration.connections.length === 0) {
    if (!connections.some((declared) => declared.name === name)) return;
    const problem = `has no connection, but there is a section [connections.${name}]; add connection = "${name}", or rename one of the two`;
    throw new KeyProblem(key, problem);
  }
  for (const connection of declaration.connections)
    checkConnection({ ...declaration, connection }, tables, connections, portals);
}

function checkConnection(
  { name, connection, portal, scope }: DeclaredAppliance & { readonly connection: string },
  tables: Readonly<Record<string, ApplianceSection>>,
  connections: readonly DeclaredConnection[],
  portals: readonly string[],
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
    throw new KeyProblem(`${key}.connection${tables[name]?.connections === undefined ? '' : 's'}`, problem);
  }
  const portalOfConnection = declared.portal ?? portals[0] ?? null;
  if (portal !== null && portal !== portalOfConnection) {
    const problem = `is ${JSON.stringify(portal)}, and the connection ${connection} is at ${JSON.stringify(portalOfConnection)}; leave it out`;
    throw new KeyProblem(`${key}.portal`, problem);
  }
  if (scope !== null && !sameScope(scope, declared.scope)) {
    const problem = `is ${JSON.stringify(scope)}, and the connection ${connection} has ${JSON.stringify(declared.scope ?? '')}; leave it out`;
    throw new KeyProblem(`${key}.scope`, problem);
  }
}

async function readCredentials(
  key: string,
  { secret_file, jwks_file }: ApplianceSection,
  context: DeclarationContext,
): Promise<ClientCredentials> {
  if (secret_file !== undefined && jwks_file !== undefined)
    throw new KeyProblem(key, 'has both secret_file and jwks_file; remove one of them');
  if (secret_file !== undefined) return readSecretHash(`${key}.secret_file`, secret_file, context);
  if (jwks_file !== undefined) return readJwks(`${key}.jwks_file`, jwks_file, context);
  throw new KeyProblem(key, 'has neither secret_file nor jwks_file; add one of them');
}

/** @throws Error with a message that completes "KEY: …" */
function checkPortal(portal: string | null, portals: readonly string[]): string | null {
  if (portal === null || portals.includes(portal)) return portal;
  const found = JSON.stringify(portal.slice(0, 80));
  if (portals.length === 0) throw new Error(`no portal is configured; add a section [portals.NAME] (found ${found})`);
  throw new Error(`must be the name of a configured portal: ${portals.join(', ')} (found ${found})`);
}

/** @throws KeyProblem */
async function readSecretHash(key: string, file: string, context: ReadingContext): Promise<ClientCredentials> {
  const read = await context.readSecret(key, file, 'exact').catch((error: Error) => {
    throw new KeyProblem(key, error.message);
  });
  const secret = read.reveal();
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new KeyProblem(
      key,
      `the secret must have ${MIN_SECRET_LENGTH} or more characters (found ${secret.length}); best are 256 random bits (openssl rand -hex 32)`,
    );
  }
  if (!SECRET_CHARACTERS.test(secret))
    throw new KeyProblem(
      key,
      'the secret contains a character that is not printable ASCII; make another secret without it',
    );
  return { kind: 'secret', hash: sha256(secret) };
}

/** @throws KeyProblem */
async function readJwks(key: string, file: string, { directory }: ReadingContext): Promise<ClientCredentials> {
  const path = resolve(directory, file);
  const text = await readBoundedFile(path, MAX_JWKS_BYTES).catch((error: Error) => {
    throw new KeyProblem(key, `${unreadableFileMessage(path, error)}; paths are relative to ${directory}`);
  });
  const jwkSet = parseJwkSet(parseJson(text));
  if (jwkSet.kind === 'unusable') throw new KeyProblem(key, `${path} ${jwkSet.reason}`);
  return { kind: 'keys', keys: jwkSet.keys };
}
