import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LOAD_CORE } from './program.ts';

/** What one connection at a time asks, again and again. */
export interface RequestLoop {
  /** As it goes over the wire. */
  readonly request: string;
  /** What a good answer holds. */
  readonly expected?: string;
}

/** A load over TLS on one server of this machine, by a program of its own on a core of its own. */
export interface LoadParameters {
  readonly port: number;
  readonly chains: readonly RequestLoop[];
  /** `kept` where left out: a connection a chain. Else one a request, with a whole TLS handshake. */
  readonly connections?: 'kept' | 'new';
  /** Requests a second at even distances, whoever has been answered; left out: the next one after each answer. */
  readonly rate?: number;
  /** The loopback addresses that connections come from, in turn; default: 127.0.0.1. */
  readonly addresses?: readonly string[];
  /** How long nothing is counted, and how long it is, in s. */
  readonly warmUp: number;
  readonly seconds: number;
}

/** What came of a load. */
export interface LoadResult {
  /** Good answers a second. */
  readonly rate: number;
  /** From the request, its connection included where that was made for it, to the end of its answer, in ms. */
  readonly p50: number;
  readonly p99: number;
  /** Requests, counted or not. */
  readonly sent: number;
  /** How busy the load kept its own core while it was counted, 0 to 1; at even distances always. */
  readonly busy: number;
}

/**
 * @param within the program, and its arguments, that the load has to become in order to reach the server
 * @throws Error where there was a bad answer, or none
 */
export async function runLoad(
  server: string,
  job: LoadParameters,
  within: readonly string[] = [],
): Promise<LoadResult> {
  const driver = [...within, process.execPath, join(import.meta.dirname, 'load-driver.js'), JSON.stringify(job)];
  const { stdout } = await promisify(execFile)('taskset', ['-c', String(LOAD_CORE), ...driver], {
    maxBuffer: 64 << 20,
  });
  const { errors, example, ...load } = JSON.parse(stdout) as LoadResult & { errors: number; example: string | null };
  if (errors > 0) throw new Error(`${server}: ${errors} bad answers, as ${example}`);
  if (!(load.rate > 0)) throw new Error(`${server}: no answer in ${job.seconds} s`);
  return load;
}

/** What an OAuth library sends for a token, as it goes over the wire: `client_credentials`, `client_secret_basic`. */
export function tokenRequest(
  port: number,
  { client_id, client_secret }: { readonly client_id: string; readonly client_secret: string },
  path = '/oauth/token',
): string {
  const body = 'grant_type=client_credentials';
  const headers = [
    `Host: 127.0.0.1:${port}`,
    `Authorization: Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
  ];
  return `POST ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`;
}
