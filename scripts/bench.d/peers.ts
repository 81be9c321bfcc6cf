import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tlsOptions } from '../../src/lan/tls.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { SERVICE_ENV, SERVICE_FLAGS } from './hub.ts';
import { type Program, startProgram } from './program.ts';

/** The client that requests tokens from the peers. */
export const PEER_CLIENT = { client_id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', client_secret: 'bench-secret' };

/**
 * Starts a program of bench.d/peers, by default with the flags and variables of the hub's service. The program prints
 * its address as JSON, which is the `said` line of the result.
 */
export function startPeer(
  file: string,
  args: readonly string[],
  { flags, env } = { flags: SERVICE_FLAGS, env: SERVICE_ENV },
): Promise<Program> {
  const command = [process.execPath, ...flags, join(import.meta.dirname, 'peers', file), ...args];
  return startProgram(command, { env: { ...process.env, ...env }, ready: (line) => line.startsWith('{') });
}

/**
 * Writes the TLS options for a peer: a server certificate of the same kind as the hub's with its chain, and the hub's
 * TLS settings, as JSON for `node:tls`.
 * @param folder for the file @returns the path of the file
 */
export async function writeTlsOptions(folder: string): Promise<string> {
  const authority = await createAuthority();
  const addresses = ['127.0.0.1', '::1'];
  const { certificate, key } = await issueLeaf(authority, { names: ['localhost'], addresses, now: Date.now() });
  const file = join(folder, 'tls.json');
  writeFileSync(file, JSON.stringify(tlsOptions({ certificate, key })), { mode: 0o600 });
  return file;
}
