import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { StateFile } from './memory/state-file.ts';
import { OptionError } from './settings/validation.ts';

/** What both origins are served with, and what clients need to trust it. */
export interface TlsCredentials {
  /** The leaf and its CA, PEM. */
  readonly certificate: string;
  /** The leaf's private key, PEM. */
  readonly key: string;
  /** The private CA's certificate, PEM. */
  readonly ca: string;
}

/** Where the emulator is reached over TLS. */
export interface CertificateOptions {
  readonly host: string;
  readonly publicHost: string;
  /** The names that requests may be for. */
  readonly hostNames: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

const OWNER = 'Latchkey portal emulator';

/**
 * A leaf for loopback and for the names and addresses that the emulator is told to have.
 * @param file has the private CA from before, or keeps the new one; null: nothing is kept
 */
export async function createTlsCredentials(
  file: StateFile | null,
  { host, publicHost, hostNames: names, now }: CertificateOptions,
): Promise<TlsCredentials> {
  // Loaded only where TLS is wanted: it is the slowest part of a start.
  const { createAuthority, issueLeaf } = await import('../system/x509/issuing.ts');
  const authority = file?.state.authority ?? (await createAuthority(OWNER));
  file?.save({ authority });
  const hosts = ['127.0.0.1', '::1', host, publicHost, ...names].map((one) => one.replace(/%.*$/, ''));
  const leaf = await issueLeaf(authority, {
    names: hosts.filter((one) => isIP(one) === 0),
    addresses: hosts.filter((one) => isIP(one) !== 0),
    now,
    owner: OWNER,
  });
  return { certificate: leaf.certificate, key: leaf.key, ca: authority.certificate };
}

/**
 * Writes the CA's certificate where clients are told to look for it.
 * @throws OptionError where it can't be written
 */
export async function writeCaFile(file: string, ca: string): Promise<void> {
  try {
    await writeFile(file, ca);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new OptionError(
      `caFile: found ${file}, which can't be written${code}; allowed is a file in a folder of yours`,
    );
  }
}
