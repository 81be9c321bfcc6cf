import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tlsOptions } from '../../src/lan/tls.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { SERVICE_ENV, SERVICE_FLAGS } from './hub.ts';
import { type Program, startProgram } from './program.ts';

/** The client that asks peers. */
export const PEER_CLIENT = { client_id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', client_secret: 'bench-secret' };

/**
 * Starts a program of bench.d/peers, with the flags and variables of the hub's service unless others are given; it says in
 * JSON where it listens.
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
 * Writes what a peer needs to speak TLS as the hub does: a leaf of its kind with what leads to its CA, and the hub's own
 * settings. JSON as `node:tls` takes it.
 * @param folder where the file is put @returns the file
 */
export async function writeTlsOptions(folder: string): Promise<string> {
  const authority = await createAuthority();
  const addresses = ['127.0.0.1', '::1'];
  const { certificate, key } = await issueLeaf(authority, { names: ['localhost'], addresses, now: Date.now() });
  const file = join(folder, 'tls.json');
  writeFileSync(file, JSON.stringify(tlsOptions({ certificate, key })), { mode: 0o600 });
  return file;
}
