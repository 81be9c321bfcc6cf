import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { HEATER, obtainCode, startTestEmulator } from '../../emulator/portal-client.ts';
import { GO_CACHE } from '../../support/program.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

/** Debian's packages of these clients. */
const PYTHON_CLIENT = ['/usr/bin/python3', '/usr/lib/python3/dist-packages/requests_oauthlib'];
const GO_CLIENT = ['/usr/bin/go', '/usr/share/gocode/src/golang.org/x/oauth2'];

function missingOf(files: readonly string[]): string | null {
  const missing = files.filter((file) => !existsSync(file));
  return missing.length === 0 ? null : `missing: ${missing.join(', ')}`;
}

/** A client program that pairs and refreshes for each line of JSON on its stdin, and writes the result as a line. */
class ClientProgram implements Disposable {
  readonly #child;
  readonly #lines;

  constructor(program: string, ...args: string[]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** @throws Error with what the client says */
  async run({ baseUrl, frontendUrl, clientId, clientSecret }: Emulator, more: object): Promise<unknown> {
    const addresses = { base_url: baseUrl, frontend_url: frontendUrl };
    const job = { ...addresses, client_id: clientId, client_secret: clientSecret, ...more };
    this.#child.stdin.write(`${JSON.stringify(job)}\n`);
    const result = JSON.parse(String((await this.#lines.next()).value)) as { readonly error?: string };
    if (result.error !== undefined) throw new Error(result.error);
    return result;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

describe('requests-oauthlib', () => {
  const options = { autoLogin: true, clients: [{ ...HEATER, secret: 'plain-secret' }] };
  let client: ClientProgram;
  setUpOnce(
    async (parts) => {
      client = parts.use(
        new ClientProgram('/usr/bin/python3', join(import.meta.dirname, 'clients/requests_oauthlib_client.py')),
      );
    },
    { skipReason: () => missingOf(PYTHON_CLIENT) },
  );

  test('requests-oauthlib gets and refreshes tokens at the emulator', async () => {
    await using emulator = await startTestEmulator(options);
    const scope = ['Monitoring', 'RemoteControl'];
    expect(await client.run(emulator, { scope })).toEqual({ scope, expires_in: 3600, rotated: true, user: 'alice' });
  });
});

describe('golang.org/x/oauth2', () => {
  let client: ClientProgram;
  setUpOnce(
    async (parts) => {
      const { path } = parts.use(stateFolder());
      const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
      const program = join(path, 'client');
      const source = join(import.meta.dirname, 'clients/go-oauth2/main.go');
      await promisify(execFile)('/usr/bin/go', ['build', '-o', program, source], { env });
      client = parts.use(new ClientProgram(program));
    },
    { skipReason: () => missingOf(GO_CLIENT) },
  );

  test.for(['accept', 'refuse'] as const)(
    "golang.org/x/oauth2 tries HTTP Basic first and gets tokens if the emulator's setting basic is %s",
    async (basic) => {
      await using emulator = await startTestEmulator({ basic });
      const result = await client.run(emulator, { code: await obtainCode(emulator) });
      expect(result).toEqual({ token_type: 'bearer', rotated: true, status: 200 });
      const tokenRequests = emulator.requests.filter((entry) => entry.endpoint === 'token');
      expect(tokenRequests[0]).toMatchObject({ authorization: 'basic', status: basic === 'accept' ? 200 : 401 });
      expect(tokenRequests.at(-1)?.status).toBe(200);
      expect(emulator.observations.codesRepeated).toBe(0);
    },
  );
});
