import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LOAD_CORE } from './program.ts';

/** A request that one connection sends repeatedly. */
export interface RequestLoop {
  /** The bytes on the wire. */
  readonly request: string;
  /** A text that a good response contains. */
  readonly expected?: string;
}

/** A load on one server of this machine, from a separate program on its own core. */
export interface LoadParameters {
  readonly port: number;
  /** Default: true; false is plain HTTP. */
  readonly tls?: boolean;
  readonly loops: readonly RequestLoop[];
  /** `kept` (the default): one connection per loop. `new`: one per request, with a full TLS handshake. */
  readonly connections?: 'kept' | 'new';
  /**
   * Requests per second at regular intervals, even if responses are late. Default: the next request after each
   * response.
   */
  readonly rate?: number;
  /** The loopback addresses that connections come from, in turn; default: 127.0.0.1. */
  readonly addresses?: readonly string[];
  /** How long requests are sent but not counted, and then how long they are counted, in s. */
  readonly warmUp: number;
  readonly seconds: number;
}

/** The result of a load. */
export interface LoadResult {
  /** Good responses per second. */
  readonly rate: number;
  /**
   * From the request (with `rate`: from the time when it was due) to the end of its response, including the connection
   * if it was opened for the request, in ms.
   */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly worst: number;
  /** All requests, including those that were not counted. */
  readonly sent: number;
  /** The utilization of the load generator's core while requests were counted, 0 to 1. With `rate` it is always 1. */
  readonly busy: number;
}

/**
 * Runs a load.
 * @param server its name, for errors
 * @param within a command that runs the load generator where it can reach the server
 * @throws Error if a response was bad, or if there was none
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
  if (errors > 0) throw new Error(`${server}: ${errors} bad responses, for example ${example}`);
  if (!(load.rate > 0)) throw new Error(`${server}: no response in ${job.seconds} s`);
  return load;
}

/** The bytes of a token request: `client_credentials`, `client_secret_basic`. */
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
