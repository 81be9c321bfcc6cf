import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readCustomCertificate } from '../../src/certificates/custom-certificate.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { logIn, pairFleet } from '../reliability/fleet.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { stateFolder } from '../support/state-folder.ts';
import { supervise, superviseUntilReady } from './supervised.ts';

test.each(['', 'secrets_'])(
  'the hub reads secrets from credentials that systemd names with the prefix %j',
  async (prefix) => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const credentials = join(hub.directory, 'credentials');
    await mkdir(credentials);
    await rename(join(hub.directory, 'portal.secret'), join(credentials, `${prefix}portal.secret`));
    const key = randomBytes(32).toString('base64url');
    rememberSecrets([key]);
    await writeFile(join(credentials, `${prefix}store.key`), `${key}\n`);
    const env = { CREDENTIALS_DIRECTORY: credentials };
    {
      await using daemon = await superviseUntilReady(hub, '', { env });
      await pairFleet(hub, emulator, ['wallbox']);
      daemon.child.kill('SIGTERM');
      await daemon.ended;
    }
    expect(existsSync(join(hub.directory, 'state/store.key'))).toBe(false);
    // The store can't be opened without its key.
    await using keyless = supervise(hub, '/nowhere', { env: { ...env, CREDENTIALS_DIRECTORY: hub.directory } });
    expect((await keyless.ended).status).toBe(78);
  },
);

test('a client secret of the credentials directory that the portal rejects is reported with its file there', async () => {
  await using emulator = await startPortal();
  const { baseUrl, frontendUrl, clientId } = emulator;
  const portal = { baseUrl, frontendUrl, clientId, clientSecret: 'a-secret-of-before' };
  await using hub = await HubProcess.prepare({ emulator: portal });
  rememberSecrets(['a-secret-of-before']);
  const credentials = join(hub.directory, 'credentials');
  await mkdir(credentials);
  await rename(join(hub.directory, 'portal.secret'), join(credentials, 'secrets_portal.secret'));
  await using daemon = await superviseUntilReady(hub, '', { env: { CREDENTIALS_DIRECTORY: credentials } });
  await hub.addAppliance('wallbox', 'Monitoring');
  await logIn(emulator, await hub.beginPairing('wallbox'));
  const { pairing_failed: failed } = await hub.until('wallbox', (status) => status.pairing_failed !== undefined);
  expect(failed?.message).toContain('the client secret in /etc/latchkey/credentials/portal.secret, restart the hub');
  daemon.child.kill('SIGTERM');
  await daemon.ended;
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
