import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import * as v from 'valibot';
import type { BackupState } from '../../core/backup-state.ts';
import { Failure } from '../../core/failure.ts';
import type { Secret } from '../../core/secret.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import {
  applianceAttributes,
  applianceName,
  clientId,
  doubt,
  fromStoredGrant,
  scope,
  storedTokens,
  toStoredGrant,
} from '../rows/schemas.ts';

/** Grows when a copy can no longer be read by a Latchkey that knows the one before. */
const FORMAT_VERSION = 1;

const backupSchema = v.object({
  format: v.literal(FORMAT_VERSION),
  made: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8_640_000_000_000_000)),
  settings: v.record(v.string(), v.string()),
  appliances: v.array(
    v.object({
      id: v.pipe(v.string(), v.uuid()),
      name: applianceName,
      clientId,
      portal: v.string(),
      scope,
      ...applianceAttributes,
    }),
  ),
  grants: v.array(
    v.object({
      appliance: v.string(),
      generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
      ...storedTokens,
      doubt: v.nullable(doubt),
      refused: v.nullable(instantSchema),
      distrusted: v.nullable(instantSchema),
      misconfigured: v.nullable(instantSchema),
    }),
  ),
  sessions: v.array(v.object({ hash: v.string(), appliance: v.string(), device: v.string(), begun: instantSchema })),
});

/** The copy as JSON, with every secret in the clear: it is to be encrypted. */
export function serializeBackup({ settings, grants, ...rest }: BackupState): string {
  return JSON.stringify({
    format: FORMAT_VERSION,
    settings: Object.fromEntries(settings),
    grants: grants.map(({ accessTokenRejectedAt, ...grant }) => ({
      ...toStoredGrant(grant),
      distrusted: accessTokenRejectedAt,
    })),
    ...rest,
  });
}

/** @throws Failure `copy_unusable` */
export function parseBackup(text: string): BackupState {
  const raw = parseBackupJson(text);
  const { format } = v.parse(v.fallback(v.object({ format: v.number() }), { format: 0 }), raw);
  if (format > FORMAT_VERSION) {
    throw new Failure(
      'copy_unusable',
      `the copy has format ${format}, made by a newer Latchkey; this one knows formats up to ${FORMAT_VERSION}: install the newer version`,
    );
  }
  const parsed = v.safeParse(backupSchema, raw);
  if (!parsed.success)
    throw new Failure('copy_unusable', 'the copy was opened, and what is in it makes no sense: take another one');
  const { made, settings, appliances, grants, sessions } = parsed.output;
  const known = new Set(appliances.map(({ id }) => id));
  return {
    made,
    settings: new Map(Object.entries(settings)),
    appliances,
    grants: grants
      .filter(({ appliance }) => known.has(appliance))
      .map(({ distrusted, ...grant }) => ({ ...fromStoredGrant(grant), accessTokenRejectedAt: distrusted })),
    sessions: sessions.filter(({ appliance }) => known.has(appliance)),
  };
}

function parseBackupJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message may repeat what it found, and that is secret.
    throw new Failure('copy_unusable', 'the copy was opened, and what is in it is no JSON: take another one');
  }
}

/** RFC 7518 section 4.8: the key is made of the passphrase by PBKDF2 with SHA-512. */
const JWE_ALGORITHM = 'PBES2-HS512+A256KW';
const JWE_ENCRYPTION = 'A256GCM';
/** Rounds of PBKDF2: about a second on a Pi. OWASP asks for 210,000 with SHA-512. */
const PBKDF2_ITERATIONS = 600_000;
/** A copy that wants more rounds was made to keep the hub busy. */
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
      'this is no copy that "latchkey backup" made, or it is damaged: name another file',
    );
  }
  if (typeof header['p2c'] !== 'number' || header['p2c'] > MAX_PBKDF2_ITERATIONS) {
    throw new Failure(
      'copy_unusable',
      `the copy asks for more than ${MAX_PBKDF2_ITERATIONS} rounds of key derivation: take one that "latchkey backup" made`,
    );
  }
  const options = {
    keyManagementAlgorithms: [JWE_ALGORITHM],
    contentEncryptionAlgorithms: [JWE_ENCRYPTION],
    maxPBES2Count: MAX_PBKDF2_ITERATIONS,
  };
  const opened = await compactDecrypt(sealed, passphraseBytes(passphrase), options).catch(() => {
    throw new Failure(
      'copy_unusable',
      'the passphrase is wrong, or the copy is damaged: try again, or take another copy',
    );
  });
  return new TextDecoder().decode(opened.plaintext);
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
