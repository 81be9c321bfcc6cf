import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SharedTls } from '../../src/lan/tls.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';

/**
 * Writes what a peer needs to speak TLS as the hub does: a leaf of its kind with what leads to its CA, and the hub's own
 * settings. JSON as `node:tls` takes it, the ticket keys as base64.
 * @param folder where the file is put @returns the file
 */
export async function writeTlsOptions(folder: string): Promise<string> {
  const authority = await createAuthority();
  const addresses = ['127.0.0.1', '::1'];
  const { certificate, key } = await issueLeaf(authority, { names: ['localhost'], addresses, now: Date.now() });
  const { ticketKeys, ...options } = new SharedTls({ certificate, key }).options;
  const file = join(folder, 'tls.json');
  writeFileSync(file, JSON.stringify({ ...options, ticketKeys: ticketKeys?.toString('base64') }), { mode: 0o600 });
  return file;
}
