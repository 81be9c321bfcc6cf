import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import * as v from 'valibot';
import type { BackupContents } from '../../core/backup-contents.ts';
import { Failure } from '../../core/failure.ts';
import type { Secret } from '../../core/secret.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import {
  applianceAttributes,
  applianceName,
  clientId,
  connectionAttributes,
  connectionName,
  damaged,
  doubt,
  revealSecret,
  scope,
  storedTokens,
} from '../rows/schemas.ts';

/** Incremented when versions that read the previous format can't read the new one. */
const FORMAT_VERSION = 1;

const id = v.pipe(v.string(), v.uuid());

const backupSchema = v.object({
  format: v.literal(FORMAT_VERSION),
  made: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8_640_000_000_000_000)),
  settings: v.record(v.string(), v.string()),
  connections: v.array(
    v.object({ id, name: connectionName, portal: v.string(), scope, damaged, ...connectionAttributes }),
  ),
  appliances: v.array(v.object({ id, name: applianceName, clientId, connection: v.string(), ...applianceAttributes })),
  grants: v.array(
    v.object({
      connection: v.string(),
      generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
      ...storedTokens,
      doubt: v.nullable(doubt),
      refused: v.nullable(instantSchema),
      accessTokenRejectedAt: v.nullable(instantSchema),
      misconfigured: v.nullable(instantSchema),
    }),
  ),
  sessions: v.array(v.object({ hash: v.string(), appliance: v.string(), device: v.string(), begun: instantSchema })),
});

/** The backup as JSON, with every secret in the clear: the caller must encrypt it. */
export function serializeBackup({ settings, ...rest }: BackupContents): string {
  return JSON.stringify({ format: FORMAT_VERSION, settings: Object.fromEntries(settings), ...rest }, revealSecret);
}

/** The inverse of {@link serializeBackup}. @throws Failure `copy_unusable` */
export function parseBackup(text: string): BackupContents {
  const raw = parseBackupJson(text);
  const { format } = v.parse(v.fallback(v.object({ format: v.number() }), { format: FORMAT_VERSION }), raw);
  if (format !== FORMAT_VERSION) {
    throw new Failure(
      'copy_unusable',
      `the backup has format ${format}, and this Latchkey reads only format ${FORMAT_VERSION}: install the version that made it`,
    );
  }
  const parsed = v.safeParse(backupSchema, raw);
  if (!parsed.success)
    throw new Failure('copy_unusable', 'the backup was decrypted, but its content is invalid: use another one');
  const { made, settings, connections, appliances, grants, sessions } = parsed.output;
  const known = new Set(appliances.map(({ id }) => id));
  const knownConnections = new Set(connections.map(({ id }) => id));
  if (!appliances.every(({ connection }) => knownConnections.has(connection)))
    throw new Failure('copy_unusable', 'an appliance of the backup has no connection: use another backup');
  return {
    made,
    settings: new Map(Object.entries(settings)),
    connections,
    appliances,
    grants: grants.filter(({ connection }) => knownConnections.has(connection)),
    sessions: sessions.filter(({ appliance }) => known.has(appliance)),
  };
}

function parseBackupJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Without the cause: the parser's message may quote the content, which is secret.
    throw new Failure('copy_unusable', 'the backup was decrypted, but its content is not JSON: use another one');
  }
}

/** PBKDF2 with SHA-512 derives the key from the passphrase (RFC 7518, 4.8). */
const JWE_ALGORITHM = 'PBES2-HS512+A256KW';
const JWE_ENCRYPTION = 'A256GCM';
/** About a second on a Pi. OWASP recommends 210,000 with SHA-512. */
const PBKDF2_ITERATIONS = 600_000;
/** A backup with more iterations was made to keep the hub busy. */
const MAX_PBKDF2_ITERATIONS = 2_000_000;

/** Encrypts a text with a passphrase, as a JWE (RFC 7516, compact). */
export function encryptWithPassphrase(text: string, passphrase: Secret): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: JWE_ALGORITHM, enc: JWE_ENCRYPTION, typ: 'latchkey-copy' })
    .setKeyManagementParameters({ p2c: PBKDF2_ITERATIONS })
    .encrypt(passphraseBytes(passphrase));
}

/** @throws Failure `copy_unusable` */
export async function decryptWithPassphrase(sealed: string, passphrase: Secret): Promise<string> {
  const header = readHeader(sealed);
  if (header['alg'] !== JWE_ALGORITHM || header['typ'] !== 'latchkey-copy') {
    throw new Failure(
      'copy_unusable',
      'this is not a backup made by "latchkey backup", or it is damaged: name another file',
    );
  }
  if (typeof header['p2c'] !== 'number' || header['p2c'] > MAX_PBKDF2_ITERATIONS) {
    throw new Failure(
      'copy_unusable',
      `the backup needs more than ${MAX_PBKDF2_ITERATIONS} iterations of key derivation: use one made by "latchkey backup"`,
    );
  }
  const options = {
    keyManagementAlgorithms: [JWE_ALGORITHM],
    contentEncryptionAlgorithms: [JWE_ENCRYPTION],
    maxPBES2Count: MAX_PBKDF2_ITERATIONS,
  };
  const decrypted = await compactDecrypt(sealed, passphraseBytes(passphrase), options).catch(() => {
    throw new Failure(
      'copy_unusable',
      'the passphrase is wrong, or the backup is damaged: try again, or use another backup',
    );
  });
  return new TextDecoder().decode(decrypted.plaintext);
}

function readHeader(sealed: string): Record<string, unknown> {
  try {
    return { ...decodeProtectedHeader(sealed) };
  } catch {
    return {};
  }
}

function passphraseBytes(passphrase: Secret): Uint8Array {
  return new TextEncoder().encode(passphrase.reveal());
}
