import { resolve } from 'node:path';
import type * as v from 'valibot';
import {
  type ClientCredentials,
  checkApplianceName,
  checkClientId,
  checkScope,
  type DeclaredAppliance,
} from '../core/appliances/appliance.ts';
import { Failure, messageOf } from '../core/failure.ts';
import { readBoundedFile } from '../system/bounded-file.ts';
import { parseJwkSet } from '../system/jwk-set.ts';
import type { readSecret } from '../system/secret-file.ts';
import { sha256 } from '../system/secret-hash.ts';
import type { applianceSchema } from './schema.ts';

/** What reading declarations takes. */
interface DeclarationContext {
  /** The names of the configured portals. */
  readonly portals: readonly string[];
  /** Where relative paths begin. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentialsDirectory: string | undefined;
  /** Reads a secret's file. */
  readonly readSecret: typeof readSecret;
  /** The failure that says what is wrong with a key. */
  invalidKey(key: string, what: string): Failure;
  /** Called with what is wrong with an appliance, which is left out. */
  report(fault: Failure): void;
}

/** A table `[appliances.NAME]`. */
type ApplianceSection = v.InferOutput<typeof applianceSchema>;

/** Characters of a secret that a maker chose: what is shorter is soon guessed. */
const MIN_SECRET_LENGTH = 16;
/** VSCHAR of RFC 6749, appendix A.2: other characters come to the hub as each library encodes them. */
const SECRET_CHARACTERS = /^[\x20-\x7e]+$/;
/** Bytes of a JWK Set. */
const MAX_JWKS_BYTES = 65_536;

/** Reads all of `[appliances.NAME]`, with the files that are named there. */
export async function readDeclaredAppliances(
  tables: Readonly<Record<string, ApplianceSection>>,
  context: DeclarationContext,
): Promise<DeclaredAppliance[]> {
  const declarations: DeclaredAppliance[] = [];
  for (const [name, table] of Object.entries(tables)) {
    try {
      const declaration = await readDeclaredAppliance(name, table, context);
      const other = declarations.find(({ clientId }) => clientId === declaration.clientId);
      if (other !== undefined) {
        const what = `found ${JSON.stringify(other.clientId)}, which is the client_id of ${other.name} too; allowed is another`;
        throw context.invalidKey(`appliances.${name}.client_id`, what);
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
  const about = async <T>(key: string, read: () => T | Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw context.invalidKey(key, messageOf(error));
    }
  };
  await about('appliances', () => checkApplianceName(name));
  const key = `appliances.${name}`;
  return {
    name,
    clientId: await about(`${key}.client_id`, () => checkClientId(table.client_id ?? name)),
    scope: await about(`${key}.scope`, () => checkScope(table.scope)),
    portal: await about(`${key}.portal`, () => checkPortal(table.portal ?? null, context.portals)),
    credentials: await readCredentials(key, table, context, about),
  };
}

async function readCredentials(
  key: string,
  { secret_file, jwks_file }: ApplianceSection,
  context: DeclarationContext,
  about: <T>(key: string, read: () => Promise<T>) => Promise<T>,
): Promise<ClientCredentials> {
  if (secret_file !== undefined && jwks_file !== undefined) {
    throw context.invalidKey(key, 'has both secret_file and jwks_file; allowed is one of them');
  }
  if (secret_file !== undefined) return about(`${key}.secret_file`, () => readSecretHash(secret_file, context));
  if (jwks_file !== undefined) return about(`${key}.jwks_file`, () => readJwks(jwks_file, context));
  throw context.invalidKey(key, 'has neither secret_file nor jwks_file; one of them is needed');
}

/** @throws Error in words that fit behind the key's name, as all that follow */
function checkPortal(portal: string | null, portals: readonly string[]): string | null {
  if (portal === null || portals.includes(portal)) return portal;
  const allowed = portals.length === 0 ? 'none, as there is no table [portals.NAME]' : portals.join(', ');
  throw new Error(`found ${JSON.stringify(portal.slice(0, 80))}; allowed is ${allowed}`);
}

async function readSecretHash(
  file: string,
  { directory, credentialsDirectory: credentials, readSecret: secretOf }: DeclarationContext,
): Promise<ClientCredentials> {
  const secret = (await secretOf(file, directory, credentials)).reveal();
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new Error(
      `holds ${secret.length} characters; allowed are ${MIN_SECRET_LENGTH} or more, best of all 256 random bits (openssl rand -hex 32)`,
    );
  }
  if (!SECRET_CHARACTERS.test(secret))
    throw new Error('holds a character that is not of ASCII; allowed are its printable ones');
  return { kind: 'secret', hash: sha256(secret) };
}

async function readJwks(file: string, { directory }: DeclarationContext): Promise<ClientCredentials> {
  const path = resolve(directory, file);
  const text = await readBoundedFile(path, MAX_JWKS_BYTES).catch((error: unknown) => {
    const why = error instanceof RangeError ? error.message : 'is it there, and may this user read it?';
    throw new Error(`names a file that can't be read (${why}); relative paths begin at ${directory}`);
  });
  const read = parseJwkSet(tryParseJson(text));
  if (read.kind === 'unusable') throw new Error(`${path} ${read.reason}`);
  return { kind: 'keys', keys: read.keys };
}

/** The JSON in a text; undefined where it is none. */
function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
