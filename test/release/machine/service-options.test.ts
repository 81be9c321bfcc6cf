import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, SECRET_FILE, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

const DROP_IN = '/etc/systemd/system/latchkey.service.d/test.conf';

/** One machine; every test leaves a running hub with a paired appliance. */
let hub: InstalledHub;
let wallbox: CredentialsResponse;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  hub = parts.use(await InstalledHub.bootInstalled(await buildPackage()));
  wallbox = await hub.startWith('wallbox');
});

describe('set-ups of the systemd service', () => {
  it('the service accepts the client secret and the store key as encrypted credentials', async () => {
    const encrypt = (name: string, from: string) =>
      hub.machine.sh(`systemd-creds encrypt --with-key=host --name=${name} ${from} /etc/latchkey/${name}.cred`);
    await hub.machine.sh('systemctl stop latchkey');
    await encrypt('portal-home.secret', SECRET_FILE);
    await encrypt('store.key', '/var/lib/latchkey/store.key');
    await hub.machine.sh(`rm ${SECRET_FILE} /var/lib/latchkey/store.key`);
    const loaded = ['portal-home.secret', 'store.key'].map(
      (name) => `LoadCredentialEncrypted=${name}:/etc/latchkey/${name}.cred`,
    );
    await hub.machine.write(DROP_IN, ['[Service]', ...loaded, ''].join('\n'));
    await hub.machine.sh('systemctl daemon-reload');
    // Until then only systemd can read the secret.
    expect((await hub.latchkey('doctor')).stdout).toMatch(/^ok +configuration +\S+: portals: home/m);
    await hub.start();
    expect((await hub.appliance('wallbox')).state).toBe('active');
    expect((await hub.machine.sh('latchkey refresh wallbox --json')).includes('"active"')).toBe(true);
    expect(await hub.machine.sh('ls /var/lib/latchkey')).not.toContain('store.key');
  });

  it('the service accepts a store key from the credentials directory', async () => {
    const decrypt = (name: string) =>
      hub.machine.sh(
        `umask 077; systemd-creds decrypt --name=${name} /etc/latchkey/${name}.cred /etc/latchkey/credentials/${name}`,
      );
    await hub.machine.sh(`systemctl stop latchkey; rm -r ${DROP_IN}; systemctl daemon-reload`);
    await decrypt('portal-home.secret');
    await decrypt('store.key');
    await hub.start();
    expect((await hub.appliance('wallbox')).state).toBe('active');
    expect(await hub.machine.sh('ls /var/lib/latchkey')).not.toContain('store.key');
  });

  it('the first connection starts the service if systemd holds its ports, and a restart refuses none', async () => {
    await hub.machine.sh('systemctl stop latchkey; systemctl start latchkey.socket');
    expect(await hub.machine.property('latchkey', 'ActiveState')).toBe('inactive');
    expect(await hub.token(wallbox)).toHaveProperty('access_token');
    // The first response may come before systemd processes the notification.
    await eventually(async () => (await hub.machine.property('latchkey', 'ActiveState')) === 'active');

    const restarted = hub.machine.sh('systemctl restart latchkey', { seconds: 30 });
    await eventually(async () => (await hub.machine.property('latchkey', 'ActiveState')) !== 'active');
    expect(await hub.token(wallbox)).toHaveProperty('access_token');
    await restarted;
    await hub.machine.sh('systemctl stop latchkey.socket latchkey; systemctl start latchkey');
    expect(await hub.token(wallbox)).toHaveProperty('access_token');
  });

  it('the service serves the certificate that the hook has installed, which only the service can read', async () => {
    const authority = await createAuthority('Home CA of');
    const { certificate, key } = await issueLeaf(authority, {
      names: ['hub.home.example'],
      addresses: [],
      now: Date.now(),
    });
    await hub.machine.write('/root/chain.pem', certificate);
    await hub.machine.write('/root/key.pem', key, '600');
    await hub.machine.sh('/usr/lib/latchkey/install-certificate /root/chain.pem /root/key.pem');
    const directory = '/var/lib/latchkey/certificate';
    const files = await hub.machine.sh(`cd ${directory}/; stat -c '%a %u' . * | sort -u; stat -c %u ../.`);
    expect(files).toMatch(/^600 ([1-9]\d*)\n700 \1\n\1$/);
    const lan = `[lan]\ncertificate_file = "${directory}/hub.pem"\nkey_file = "${directory}/hub.key"\n`;
    await hub.machine.sh(`cat >>${CONFIGURATION_FILE}; systemctl reload latchkey`, { input: lan });
    expect((await hub.status()).hub.ca_fingerprint).toBe(spkiFingerprint(authority.certificate));
    expect((await hub.latchkey('doctor')).stdout).toMatch(/^ok +certificate +\S+hub\.pem is valid until/m);
    await hub.machine.sh('systemctl restart latchkey');
    expect((await hub.status()).hub.ca_fingerprint).toBe(spkiFingerprint(authority.certificate));
  });
});
