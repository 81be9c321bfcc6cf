import { describe, expect, it } from 'vitest';
import { InstalledHub, lineMatching, SECRET_FILE, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

/** One machine; every test leaves the service stopped and correctly configured. */
let hub: InstalledHub;

setUpMachine([], async (parts) => {
  hub = parts.use(await InstalledHub.boot());
  await hub.dpkg(await buildPackage());
  await hub.machine.sh('useradd --no-create-home guest');
});

describe('a service that a restart can not fix', () => {
  it('the installed service does not start without a portal, and says so when it is started', async () => {
    expect(await hub.machine.journal('latchkey')).toEqual([]);
    expect(await refusal()).toMatch(/\/etc\/latchkey\/latchkey\.toml: .*portals/);
  });

  it('systemd refuses a service without its credentials directory, and does not restart it', async () => {
    await hub.configure();
    await hub.machine.sh('mv /etc/latchkey/credentials /root/credentials');
    expect((await hub.machine.run('systemctl start latchkey')).status).toBe(1);
    expect(await restarts()).toEqual(['failed', '243', '0']);
    await hub.machine.sh('mv /root/credentials /etc/latchkey/credentials; systemctl reset-failed latchkey');
  });
});

describe('a hub that is started by hand', () => {
  it('a hub that is started by hand beside the service ends with one line', async () => {
    await hub.machine.sh('systemctl start latchkey', { seconds: 30 });
    const asRoot = (environment: string) =>
      hub.machine.run(`CREDENTIALS_DIRECTORY=/etc/latchkey/credentials ${environment} latchkey serve`);
    expect(await asRoot('')).toMatchObject({ status: 1, stdout: '', stderr: lineMatching(/8480|8443/) });
    expect(await asRoot('STATE_DIRECTORY=/var/lib/latchkey')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: lineMatching(/\/var\/lib\/latchkey/),
    });
    expect((await hub.status()).appliances).toEqual([]);
    expect(await restarts()).toEqual(['active', '0', '0']);
    await hub.machine.sh('systemctl stop latchkey');
  });

  it('a hub that is started by a user without access to the secret and the state ends with one line', async () => {
    const asGuest = (environment: string) => hub.machine.run(`runuser -u guest -- env ${environment} latchkey serve`);
    expect(await asGuest('HOME=/tmp')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: lineMatching(/client_secret_file/),
    });
    await hub.machine.sh(`install -o guest -m 600 ${SECRET_FILE} /srv/portal-home.secret`);
    const variables =
      'HOME=/tmp LATCHKEY_PORTALS_HOME_CLIENT_SECRET_FILE=/srv/portal-home.secret STATE_DIRECTORY=/var/lib/latchkey';
    expect(await asGuest(variables)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: lineMatching(/\/var\/lib\/latchkey/),
    });
  });
});

/** Starts the service, which must end with 78 and not be restarted. @returns the one line that it logged */
async function refusal(): Promise<string> {
  const before = (await daemonLines()).length;
  expect((await hub.machine.run('systemctl start latchkey', { seconds: 30 })).status).toBe(1);
  expect(await restarts()).toEqual(['failed', '78', '0']);
  const [line, ...more] = (await daemonLines()).slice(before);
  expect(more).toEqual([]);
  await hub.machine.sh('systemctl reset-failed latchkey');
  return line ?? '';
}

/** The daemon's own lines in the journal. */
async function daemonLines(): Promise<readonly string[]> {
  const lines = await hub.machine.journal('latchkey', '_SYSTEMD_UNIT=latchkey.service');
  return lines.filter((line) => line !== '');
}

/** The unit's state, its exit status, and how often systemd has restarted it automatically. */
function restarts(): Promise<readonly string[]> {
  return Promise.all(
    ['ActiveState', 'ExecMainStatus', 'NRestarts'].map((name) => hub.machine.property('latchkey', name)),
  );
}
