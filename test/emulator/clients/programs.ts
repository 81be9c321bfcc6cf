import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Emulator } from '../../../src/emulator/index.ts';
import { GO_CACHE } from '../../support/program.ts';

const run = promisify(execFile);

/** Debian's packages of these clients. If they are missing, their tests are skipped, and the runner reports it. */
export const PYTHON_CLIENT = existsSync('/usr/lib/python3/dist-packages/requests_oauthlib');
export const GO_CLIENT = existsSync('/usr/bin/go') && existsSync('/usr/share/gocode/src/golang.org/x/oauth2');

/** Runs a program with this JSON on its stdin and returns the JSON on its stdout. @throws Error with its stderr */
async function converse(program: string, args: readonly string[], input: object): Promise<unknown> {
  const child = run(program, [...args]);
  child.child.stdin?.end(JSON.stringify(input));
  return JSON.parse((await child).stdout);
}

/** Authorization code grant and refresh with requests-oauthlib. The emulator must log in automatically. */
export function requestsOauthlib(emulator: Emulator, scope: readonly string[]): Promise<unknown> {
  const program = join(import.meta.dirname, 'requests_oauthlib_client.py');
  return converse('/usr/bin/python3', [program], { ...addresses(emulator), scope });
}

/** Builds the client on golang.org/x/oauth2 into a folder. @returns its path */
export async function buildGoClient(folder: string): Promise<string> {
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOCACHE: GO_CACHE,
  };
  const program = join(folder, 'client');
  await run('go', ['build', '-o', program, join(import.meta.dirname, 'go-oauth2/main.go')], { env });
  return program;
}

/** Exchange and refresh with golang.org/x/oauth2. @param program the path that {@link buildGoClient} returned */
export function goOauth2(program: string, emulator: Emulator, code: string): Promise<unknown> {
  return converse(program, [], { ...addresses(emulator), code });
}

function addresses({ baseUrl, frontendUrl, clientId, clientSecret }: Emulator) {
  return { base_url: baseUrl, frontend_url: frontendUrl, client_id: clientId, client_secret: clientSecret };
}
