import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AuthorizationCode } from 'simple-oauth2';
import { beforeAll, expect, test } from 'vitest';
import { get, HEATER, location, obtainCode, start, whoami } from './portal-client.ts';

const run = promisify(execFile);

/** Debian's packages of these clients; where they are missing their tests are skipped, and the runner says so. */
const PYTHON_CLIENT = existsSync('/usr/lib/python3/dist-packages/requests_oauthlib');
const GO_CLIENT = existsSync('/usr/bin/go') && existsSync('/usr/share/gocode/src/golang.org/x/oauth2');

/** Runs a program with this JSON on its stdin; gives back the JSON on its stdout. */
async function converse(program: string, args: readonly string[], input: object): Promise<unknown> {
  const child = run(program, [...args]);
  child.child.stdin?.end(JSON.stringify(input));
  return JSON.parse((await child).stdout);
}

test.for(['header', 'body'] as const)('simple-oauth2, credentials in the %s', async (authorizationMethod) => {
  await using emulator = await start({ autoLogin: true });
  const redirect_uri = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const client = new AuthorizationCode({
    client: { id: HEATER.id, secret: HEATER.secret },
    auth: { tokenHost: emulator.frontendUrl, tokenPath: '/sso/token', authorizePath: '/sso/authorize' },
    options: { authorizationMethod },
  });
  const landed = new URL(location(await get(client.authorizeURL({ redirect_uri, scope: 'Monitoring', state: 'a b' }))));
  expect(landed.searchParams.get('state')).toBe('a b');
  const first = await client.getToken({
    code: landed.searchParams.get('code') ?? '',
    redirect_uri,
    scope: 'Monitoring',
  });
  const second = await first.refresh({ scope: 'Monitoring' });
  expect(second.token).toMatchObject({ token_type: 'bearer', scope: 'Monitoring', expires_in: 3600 });
  expect(second.token['refresh_token']).not.toBe(first.token['refresh_token']);
  expect((await whoami(emulator, String(second.token['access_token']))).status).toBe(200);
});

test.skipIf(!PYTHON_CLIENT)('requests-oauthlib', async () => {
  await using emulator = await start({ autoLogin: true, clients: [{ ...HEATER, secret: 'plain-secret' }] });
  const answer = await converse(
    '/usr/bin/python3',
    [join(import.meta.dirname, 'clients/requests_oauthlib_client.py')],
    {
      base_url: emulator.baseUrl,
      frontend_url: emulator.frontendUrl,
      client_id: emulator.clientId,
      client_secret: emulator.clientSecret,
      scope: ['Monitoring', 'RemoteControl'],
    },
  );
  expect(answer).toEqual({ scope: ['Monitoring', 'RemoteControl'], expires_in: 3600, rotated: true, user: 'alice' });
});

test.skipIf(!GO_CLIENT).for(['accept', 'refuse'] as const)(
  'golang.org/x/oauth2, which tries HTTP Basic first: %s',
  async (basic) => {
    await using emulator = await start({ basic });
    const answer = await converse(join(folder, 'client'), [], {
      base_url: emulator.baseUrl,
      frontend_url: emulator.frontendUrl,
      client_id: emulator.clientId,
      client_secret: emulator.clientSecret,
      code: await obtainCode(emulator),
    });
    expect(answer).toEqual({ token_type: 'bearer', rotated: true, status: 200 });
    const tries = emulator.requests.filter((entry) => entry.endpoint === 'token');
    expect(tries[0]).toMatchObject({ authorization: 'basic', status: basic === 'accept' ? 200 : 401 });
    expect(tries.at(-1)?.status).toBe(200);
    expect(emulator.observations.codesRepeated).toBe(0);
  },
);

let folder = '';

beforeAll(async () => {
  if (!GO_CLIENT) return;
  const made = await mkdtempDisposable(join(tmpdir(), 'emulator-clients-'));
  folder = made.path;
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOCACHE: join(tmpdir(), 'go-build-cache'),
  };
  const source = join(import.meta.dirname, 'clients/go-oauth2/main.go');
  await run('go', ['build', '-o', join(folder, 'client'), source], { env });
  return async () => {
    await made.remove();
  };
}, 180_000);
