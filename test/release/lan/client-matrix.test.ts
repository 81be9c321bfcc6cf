import { readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import type { Capability, CapabilityInput, ClientTask } from '../../lan/clients/client-protocol.ts';
import { type DeviceFlowPrompt, logIn } from '../../lan/clients/device-login.ts';
import { CLIENT_MATRIX, type ClientName, matrixTable } from '../../lan/clients/matrix.ts';
import { ClientPrograms, missingPackages } from '../../lan/clients/programs.ts';
import { HubClient } from '../../lan/hub-client.ts';
import { root } from '../../project/checkout.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';

const SCOPE = 'Monitoring RemoteControl';
const CLIENTS = Object.keys(CLIENT_MATRIX) as ClientName[];

type ResponseBody = Readonly<Record<string, unknown>>;
interface Credentials extends Pick<CapabilityInput, 'client_id' | 'client_secret'> {}

const done = new Map<ClientName, Capability[]>();
let emulator: Emulator;
let hub: HubProcess;
let wire: HubClient;
let issuer: string;
let programs: ClientPrograms;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator }));
  wire = parts.use(await HubClient.of(hub));
  issuer = `https://127.0.0.1:${hub.httpsPort}`;
  const folder = parts.use(await mkdtempDisposable(join(tmpdir(), 'latchkey-clients-')));
  programs = await ClientPrograms.build(folder.path, wire.ca);
  await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
});

describe('OAuth clients with only the address of the hub and its CA', () => {
  for (const client of CLIENTS) {
    it.skipIf(missingPackages(client).length > 0).concurrent(
      `${client} uses each capability of its library against the hub`,
      async () => {
        const capabilities: readonly Capability[] = CLIENT_MATRIX[client];
        await using program = programs.start(client);
        const does = async (
          capability: Capability,
          input: Partial<CapabilityInput>,
          shown?: (prompt: DeviceFlowPrompt) => Promise<void>,
        ) => {
          const response = await program.perform(task(capability, input), shown);
          recordDone(client, capability);
          return response;
        };
        const name = client
          .replaceAll(/[^a-z0-9]+/gi, '-')
          .toLowerCase()
          .replace(/^-/, '');
        const credentials = capabilities.includes('registration')
          ? await registersByInvite(does, name)
          : await hub.addAppliance(name, SCOPE);
        if (capabilities.includes('registration')) await registersWhileOpen(does, `${name}-2`);
        if (capabilities.includes('discovery')) {
          expect(await does('discovery', credentials)).toMatchObject({
            issuer,
            token_endpoint: `${issuer}/oauth/token`,
          });
        }

        const flow = await pairsByDeviceFlow(capabilities.includes('device_flow') ? does : asCurl, credentials);
        for (const method of ['client_secret_basic', 'client_secret_post'] as const) {
          await expectGood(await does(method, credentials));
        }
        const { access_token, refresh_token } = flow;
        if (capabilities.includes('refresh_token')) {
          const refreshed = await does('refresh_token', { ...credentials, access_token, refresh_token });
          await expectGood(refreshed);
          // The portal does not rotate here; libraries that drop the old refresh token get it again.
          expect(refreshed['refresh_token']).toBe(refresh_token);
        }
        if (capabilities.includes('revocation')) await revokesWhatTheCloudRefused(does, credentials, access_token);
        if (capabilities.includes('private_key_jwt')) await authenticatesByKey(does, `${name}-key`);
      },
    );
  }

  it.for(CLIENTS)('%s refuses a hub whose CA it was not given', async (client, { skip }) => {
    skip(missingPackages(client).length > 0, `without ${missingPackages(client).join(', ')}`);
    const input = { client_id: 'heater', client_secret: 'a-secret-that-must-not-be-sent' };
    await using program = programs.start(client, { trusting: false });
    await expect(program.perform(task('client_secret_basic', input))).rejects.toThrow(/certificate|_CERT/i);
  });
});

describe('the client matrix', () => {
  it.for(CLIENTS)(
    'the client matrix lists exactly the capabilities of %s that its test has used',
    (client, { skip }) => {
      skip(missingPackages(client).length > 0, `without ${missingPackages(client).join(', ')}`);
      expect(done.get(client)?.toSorted()).toEqual([...CLIENT_MATRIX[client]].sort());
    },
  );

  it('the page for appliance developers contains the client matrix', () => {
    expect(readFileSync(join(root, 'docs/appliances.md'), 'utf8')).toContain(`\n${matrixTable(CLIENT_MATRIX)}\n`);
  });
});

type RunCapability = (
  capability: Capability,
  input: Partial<CapabilityInput>,
  shown?: (prompt: DeviceFlowPrompt) => Promise<void>,
) => Promise<ResponseBody>;

/** curl does what a client's library does not support; that counts for no cell. */
const asCurl: RunCapability = async (capability, input, shown) => {
  await using program = programs.start('curl');
  return await program.perform(task(capability, input), shown);
};

function task(capability: Capability, input: Partial<CapabilityInput>): ClientTask {
  return { capability, input: { issuer, scope: SCOPE, ...input } };
}

function recordDone(client: ClientName, capability: Capability): void {
  const before = done.get(client) ?? [];
  if (!before.includes(capability)) done.set(client, [...before, capability]);
}

async function invite(name: string): Promise<string> {
  const { token } = await hub.ask((control) =>
    control.request('invite', { name, scope: SCOPE, portal: null, connection: null, ttl: 3600 }),
  );
  rememberSecrets([token]);
  return token;
}

function credentialsOf({ client_id, client_secret }: ResponseBody): Credentials {
  rememberSecrets([String(client_secret)]);
  return { client_id: String(client_id), client_secret: String(client_secret) };
}

async function registersByInvite(does: RunCapability, name: string): Promise<Credentials> {
  const metadata = { client_name: name, scope: SCOPE };
  const credentials = credentialsOf(await does('registration', { metadata, initial_access_token: await invite(name) }));
  expect(await hub.appliance(name)).toMatchObject({
    client_id: credentials.client_id,
    state: 'unpaired',
    scope: SCOPE,
  });
  return credentials;
}

async function registersWhileOpen(does: RunCapability, name: string): Promise<void> {
  const metadata = { client_name: name, scope: SCOPE };
  const credentials = credentialsOf(await does('registration', { metadata, initial_access_token: null }));
  const token = () => does('client_secret_basic', credentials);
  await expect(token()).rejects.toThrow(/unauthorized_client/);
  await hub.ask((control) => control.request('approveAppliance', { name }));
  await expect(token()).rejects.toThrow(/invalid_grant/);
}

async function pairsByDeviceFlow(does: RunCapability, credentials: Credentials) {
  const response = await does('device_flow', credentials, (prompt) => logIn(prompt, emulator, wire.ca));
  await expectGood(response);
  expect(response['refresh_token']).toEqual(expect.any(String));
  rememberSecrets([String(response['refresh_token'])]);
  return { access_token: String(response['access_token']), refresh_token: String(response['refresh_token']) };
}

async function revokesWhatTheCloudRefused(
  does: RunCapability,
  credentials: Credentials,
  access_token: string,
): Promise<void> {
  await does('revocation', { ...credentials, access_token });
  const fresh = await does('client_secret_basic', credentials);
  await expectGood(fresh);
  expect(fresh['access_token']).not.toBe(access_token);
}

async function authenticatesByKey(does: RunCapability, name: string): Promise<void> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const [key, jwk] = [
    await crypto.subtle.exportKey('jwk', pair.privateKey),
    await crypto.subtle.exportKey('jwk', pair.publicKey),
  ];
  const metadata = { client_name: name, scope: SCOPE, jwks: { keys: [jwk] } };
  const { client_id } = await wire.register(metadata, await invite(name));
  await hub.pair(name, emulator);
  await expectGood(await does('private_key_jwt', { client_id: String(client_id), key }));
}

/** Checks that the cloud accepts the token, and that the response has its scope and remaining lifetime. */
async function expectGood({ access_token, expires_in, scope }: ResponseBody): Promise<void> {
  expect(scope).toBe(SCOPE);
  expect(expires_in).toSatisfy((seconds: number) => seconds > 3000 && seconds <= 3600);
  const headers = { authorization: `Bearer ${access_token}` };
  expect(await (await fetch(`${emulator.baseUrl}/api/whoami`, { headers })).json()).toMatchObject({ user: 'demo' });
}
