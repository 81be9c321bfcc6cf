import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { OptionError } from './settings/validation.ts';
import type { StateFile } from './state-file.ts';

/** The certificate of both origins, and the CA that clients must trust. */
export interface TlsCredentials {
  /** The server certificate and its CA, PEM. */
  readonly certificate: string;
  /** The private key of the server certificate, PEM. */
  readonly key: string;
  /** The private CA's certificate, PEM. */
  readonly ca: string;
}

const OWNER = 'Latchkey portal emulator';

/**
 * Issues a server certificate for the loopback addresses and for all configured names and addresses.
 * @param file keeps the private CA across restarts; with null each start makes a new one
 * @param names the host names and addresses that clients may use
 * @param now milliseconds since 1970
 */
export async function createTlsCredentials(
  file: StateFile | null,
  names: readonly string[],
  now: number,
): Promise<TlsCredentials> {
  // Imported only with TLS, because it is the slowest part of a start.
  const { createAuthority, issueLeaf } = await import('../system/x509/issuing.ts');
  const authority = file?.state.authority ?? (await createAuthority(OWNER));
  file?.save({ authority });
  const hosts = ['127.0.0.1', '::1', ...names].map((one) => one.replace(/%.*$/, ''));
  const leaf = await issueLeaf(authority, {
    names: hosts.filter((one) => isIP(one) === 0),
    addresses: hosts.filter((one) => isIP(one) !== 0),
    now,
    owner: OWNER,
  });
  return { certificate: leaf.certificate, key: leaf.key, ca: authority.certificate };
}

/**
 * Writes the CA certificate to `caFile`.
 * @throws OptionError if the file can't be written
 */
export async function writeCaFile(file: string, ca: string): Promise<void> {
  try {
    await writeFile(file, ca);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new OptionError(`caFile: can't write ${file}${code}; name a file that you may write to`);
  }
}
