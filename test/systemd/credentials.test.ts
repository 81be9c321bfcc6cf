import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readCustomCertificate } from '../../src/certificates/custom-certificate.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { logIn, pairFleet } from '../reliability/fleet.ts';
import { HubProcess, type HubProcessOptions } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { stateFolder } from '../support/state-folder.ts';

/** A hub in this process whose client secret is a credential with this prefix. */
async function prepareWithCredentials(
  parts: AsyncDisposableStack,
  emulator: NonNullable<HubProcessOptions['emulator']>,
  prefix: string,
) {
  const folder = parts.use(stateFolder());
  const env = { CREDENTIALS_DIRECTORY: folder.path };
  const hub = parts.use(await HubProcess.prepare({ emulator, env, here: true }));
  await rename(join(hub.directory, 'portal.secret'), join(folder.path, `${prefix}portal.secret`));
  return { hub, credentials: folder.path };
}

test.each(['', 'secrets_'])(
  'the hub reads secrets from credentials that systemd names with the prefix %j',
  async (prefix) => {
    await using parts = new AsyncDisposableStack();
    const emulator = parts.use(await startPortal());
    const { hub, credentials } = await prepareWithCredentials(parts, emulator, prefix);
    const key = randomBytes(32).toString('base64url');
    rememberSecrets([key]);
    const keyFile = join(credentials, `${prefix}store.key`);
    await writeFile(keyFile, `${key}\n`);
    await hub.launch();
    await pairFleet(hub, emulator, ['wallbox']);
    await hub.kill('SIGTERM');
    expect(existsSync(join(hub.directory, 'state/store.key'))).toBe(false);
    await rm(keyFile);
    await expect(hub.launch()).rejects.toMatchObject({ code: 'store_key_wrong' });
  },
);

test('a client secret of the credentials directory that the portal rejects is reported with its file there', async () => {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startPortal());
  const { baseUrl, frontendUrl, clientId } = emulator;
  const portal = { baseUrl, frontendUrl, clientId, clientSecret: 'a-secret-of-before' };
  rememberSecrets([portal.clientSecret]);
  const { hub } = await prepareWithCredentials(parts, portal, 'secrets_');
  await hub.launch();
  await hub.addAppliance('wallbox', 'Monitoring');
  await logIn(emulator, await hub.beginPairing('wallbox'));
  const { pairing_failed: failed } = await hub.until('wallbox', (status) => status.pairing_failed !== undefined);
  expect(failed?.message).toContain('the client secret in /etc/latchkey/credentials/portal.secret, restart the hub');
});

test.each(['', 'secrets_'])(
  'the hub reads its own certificate and key from credentials with the prefix %j',
  async (prefix) => {
    using folder = stateFolder();
    const authority = await createAuthority();
    const { certificate, key } = await issueLeaf(authority, { names: ['hub.example'], addresses: [], now: Date.now() });
    await writeFile(join(folder.path, `${prefix}hub.pem`), certificate);
    await writeFile(join(folder.path, `${prefix}hub.key`), key);
    const files = { certificate: 'hub.pem', key: 'hub.key', directory: '/nowhere', credentials: folder.path };
    expect((await readCustomCertificate(files)).names).toEqual(['hub.example']);
    await expect(readCustomCertificate({ ...files, certificate: 'other.pem' })).rejects.toThrow(
      '/etc/latchkey/credentials',
    );
  },
);
