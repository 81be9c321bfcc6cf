import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tlsOptions } from '../../src/lan/server.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { HERE, serviceOf, tokenLoops } from './hub.ts';
import type { RequestLoop } from './load.ts';
import { type Program, startProgram } from './program.ts';

/** The names of the peers in tables. */
export const BARE_NODE = 'bare node';
export const BARE_FASTIFY = 'bare fastify';

/** The client that requests tokens from a peer. */
const CLIENT = { client_id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', client_secret: 'bench-secret' };

/** A running peer. */
export interface Peer extends Program {
  readonly port: number;
  readonly loops: readonly RequestLoop[];
}

/** Starts a Node.js that only listens on HTTP. */
export function startBareNode(): Promise<Peer> {
  return startPeer('bare-node.cjs', []);
}

/**
 * Starts a fastify server over HTTPS that sends a constant response.
 * @param tls a file of {@link writeTlsOptions}
 */
export function startBareFastify(tls: string, response: Readonly<Record<string, unknown>>): Promise<Peer> {
  return startPeer('bare-fastify-https.js', [tls, JSON.stringify(response)]);
}

/** Starts a program of bench.d/peers with the flags and variables of the hub's service; it prints its port as JSON. */
async function startPeer(file: string, args: readonly string[]): Promise<Peer> {
  const { flags, env } = serviceOf(HERE);
  const command = [process.execPath, ...flags, join(import.meta.dirname, 'peers', file), ...args];
  const program = await startProgram(command, { ...process.env, ...env });
  const { port } = JSON.parse(program.said) as { port: number };
  return { ...program, port, loops: tokenLoops(port, [CLIENT]) };
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
