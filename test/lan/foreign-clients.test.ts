import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import type { Given } from './clients/conversation.ts';

const run = promisify(execFile);

/** Debian's packages of these clients; where they are missing their tests are skipped, and the runner says so. */
const PYTHON_CLIENT = existsSync('/usr/lib/python3/dist-packages/requests_oauthlib');
const GO_CLIENT =
  existsSync('/usr/bin/go') && existsSync('/usr/share/gocode/src/golang.org/x/oauth2/clientcredentials');

const NPM_CLIENTS = [
  ['openid-client', fileURLToPath(import.meta.resolve('./clients/openid-client.ts'))],
  ['oauth4webapi', fileURLToPath(import.meta.resolve('./clients/oauth4webapi.ts'))],
  ['simple-oauth2', fileURLToPath(import.meta.resolve('./clients/simple-oauth2.ts'))],
] as const;
const METHODS = ['basic', 'post'] as const;
const SCOPE = 'Monitoring RemoteControl';

const parts = new AsyncDisposableStack();
let emulator: Emulator;
let hub: HubProcess;
let heater: CredentialsAnswer;
let folder: string;
let caFile: string;

beforeAll(async () => {
  emulator = parts.use(await startEmulator());
  hub = parts.use(await HubProcess.start({ emulator }));
  folder = parts.use(await mkdtempDisposable(join(tmpdir(), 'latchkey-clients-'))).path;
  caFile = join(folder, 'latchkey-ca.pem');
  await writeFile(caFile, (await hub.cli('ca')).stdout);
  heater = await hub.addAppliance('heater', '--scope', SCOPE);
  await hub.pair('heater', emulator);
  if (GO_CLIENT) await buildGoClient();
}, 180_000);

afterAll(async () => {
  rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
  await parts.disposeAsync();
});

describe('clients of other people, unchanged, get a token that the cloud API takes', () => {
  it.for(NPM_CLIENTS.flatMap(([name, script]) => METHODS.map((method) => [name, method, script] as const)))(
    '%s, client_secret_%s',
    async ([, method, script]) => {
      await expectToken(process.execPath, [script], method, { NODE_EXTRA_CA_CERTS: caFile });
    },
  );

  it.skipIf(!PYTHON_CLIENT).for(METHODS)('requests-oauthlib, client_secret_%s', async (method) => {
    const script = join(import.meta.dirname, './clients/requests_oauthlib_client.py');
    // It refuses plain HTTP for its own requests, and the emulator speaks nothing else.
    await expectToken('/usr/bin/python3', [script], method, { OAUTHLIB_INSECURE_TRANSPORT: '1' });
  });

  it.skipIf(!GO_CLIENT).for(METHODS)('golang.org/x/oauth2/clientcredentials, client_secret_%s', async (method) => {
    await expectToken(join(folder, 'go-client'), [], method, { SSL_CERT_FILE: caFile });
  });

  it('curl, with the very lines that "appliance add" prints', async () => {
    const { stdout } = await hub.cli('appliance', 'add', 'car', '--scope', 'Monitoring');
    rememberSecrets([/client_secret +(\S+)/.exec(stdout)?.[1] ?? '']);
    await hub.pair('car', emulator);
    const lines = stdout.slice(stdout.indexOf('latchkey ca >'));
    expect(lines).toContain('curl --cacert');
    const shell = `latchkey() { "$NODE" "$MAIN" "$@" --config "$CONFIG"; }\n${lines}`;
    const env = {
      PATH: process.env['PATH'],
      NODE: process.execPath,
      MAIN: join(import.meta.dirname, '../../src/main.ts'),
      CONFIG: join(hub.directory, 'latchkey.toml'),
    };
    const printed = await run('/bin/sh', ['-ec', shell], { cwd: folder, env });
    const token = JSON.parse(printed.stdout) as Record<string, unknown>;
    expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring' });
    const whoami = await fetch(`${emulator.baseUrl}/api/whoami`, {
      headers: { authorization: `Bearer ${token['access_token']}` },
    });
    expect(await whoami.json()).toMatchObject({ user: 'demo' });
  });

  it('curl refuses a hub whose CA it was not given', async () => {
    const endpoint = `https://127.0.0.1:${hub.httpsPort}/oauth/token`;
    await expect(run('curl', ['--silent', '--data', 'grant_type=client_credentials', endpoint])).rejects.toMatchObject({
      code: 60,
    });
  });
});

async function expectToken(
  program: string,
  args: readonly string[],
  authentication: Given['authentication'],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { client_id, client_secret } = heater;
  const given: Given & { ca_file: string } = {
    hub: `https://127.0.0.1:${hub.httpsPort}`,
    client_id,
    client_secret,
    api: emulator.baseUrl,
    authentication,
    scope: SCOPE,
    ca_file: caFile,
  };
  const client = run(program, [...args], { env: { PATH: process.env['PATH'], ...env } });
  client.child.stdin?.end(JSON.stringify(given));
  const { expires_in, ...answer } = JSON.parse((await client).stdout) as Record<string, unknown>;
  expect(answer).toEqual({ scope: SCOPE, user: 'demo' });
  expect(expires_in).toSatisfy((seconds: number) => seconds > 3000 && seconds <= 3600);
}

async function buildGoClient(): Promise<void> {
  const source = join(import.meta.dirname, './clients/go-oauth2/main.go');
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOCACHE: join(tmpdir(), 'go-build-cache'),
  };
  await run('go', ['build', '-o', join(folder, 'go-client'), source], { env });
}
