import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { LoggedRequest } from '../../../src/emulator/http/logged-request.ts';
import { readExample } from '../../emulator/examples/guide.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, lineMatching, SECRET_FILE, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

/**
 * One machine for all tests, in order: the service is not configured at first, and does not run. From its start on, each test leaves a
 * running hub, with the grant of the first pairing.
 */
let hub: InstalledHub;
let wallbox: CredentialsResponse;

setUpMachine([...OBSERVER_TOOLS, '/usr/bin/curl'], async (parts) => {
  hub = parts.use(await InstalledHub.boot());
  const output = await hub.installStopped(await buildPackage());
  // A fresh hub runs, and the output leads to its page. The tests begin with a service that does not run.
  expect(output).toMatch(/^latchkey: the hub runs;.*\n(.*\n)*.*https:\/\/\S+:8443\/sign-in\/\S+/m);
  await hub.machine.sh('useradd householder --groups latchkey-admin');
});

describe('a service that a restart can not fix', () => {
  it('the installed service does not start with a wrong configuration, and says so when it is started', async () => {
    await hub.machine.write(CONFIGURATION_FILE, '[portals.home]\n');
    expect(await refusal()).toMatch(/\/etc\/latchkey\/latchkey\.toml: portals\.home/);
  });

  it('systemd refuses a service without its credentials directory, and does not restart it', async () => {
    await hub.configure({ emulator: 'token_lifetime = "600s"' });
    await hub.machine.sh('mv /etc/latchkey/credentials /root/credentials');
    expect((await hub.machine.run('systemctl start latchkey')).status).toBe(1);
    expect(await restarts()).toEqual(['failed', '243', '0']);
    await hub.machine.sh('mv /root/credentials /etc/latchkey/credentials; systemctl reset-failed latchkey');
  });

  it('systemd does not restart a service whose sandbox it may not set up, and a drop-in starts it without one', async () => {
    const directory = '/etc/systemd/system/latchkey.service.d';
    // Like a container that forbids mounts: this one fails.
    await hub.machine.sh(
      `mkdir -p ${directory}; printf '[Service]\\nBindPaths=/nowhere:/mnt\\n' > ${directory}/a.conf; systemctl daemon-reload`,
    );
    expect((await hub.machine.run('systemctl start latchkey', { seconds: 30 })).status).toBe(1);
    expect(await restarts()).toEqual(['failed', '226', '0']);
    expect((await hub.machine.run('latchkey doctor')).stdout).toMatch(/^fail +service .*without-namespaces\.conf/m);
    await hub.machine.sh(
      [
        `printf '[Service]\\nBindPaths=\\n' > ${directory}/a.conf`,
        'useradd --system --no-create-home --shell /usr/sbin/nologin --gid latchkey-admin latchkey',
        'chown -R latchkey /etc/latchkey/credentials',
        `install -D -m 644 /usr/lib/latchkey/without-namespaces.conf ${directory}/zzzz-without-namespaces.conf`,
        'systemctl daemon-reload; systemctl reset-failed latchkey; systemctl start latchkey',
      ].join('; '),
      { seconds: 30 },
    );
    // It has only the namespaces of the machine.
    const spaces = (pid: string) =>
      hub.machine.sh(`readlink /proc/${pid}/ns/mnt /proc/${pid}/ns/user /proc/${pid}/ns/ipc`);
    expect(await spaces(await hub.machine.property('latchkey', 'MainPID'))).toBe(await spaces('1'));
    expect(await restarts()).toEqual(['active', '0', '0']);
    await hub.machine.sh(
      `systemctl stop latchkey; rm -r ${directory}; userdel latchkey; chown -R root /etc/latchkey/credentials; systemctl daemon-reload`,
    );
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
});

describe('the start of the service', () => {
  it('the service starts when the machine boots, with all its grants, and issues a token to curl on another host', async () => {
    await hub.machine.sh('systemctl start latchkey-emulator latchkey', { seconds: 30 });
    wallbox = await hub.addAppliance('wallbox');
    await hub.pair('wallbox');
    const { id } = (await hub.status()).hub;
    await hub.machine.sh('systemctl enable latchkey-emulator');
    await hub.machine.reboot();
    expect(await hub.machine.property('latchkey', 'NRestarts')).toBe('0');
    expect((await hub.status()).hub.id).toBe(id);
    // The hub cannot know the age of its token yet, so it refreshes it when the appliance requests it.
    const token = await hub.token(wallbox);
    expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring' });
    expect(await hub.whoami(String(token['access_token']))).toBe('200');
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });
});

describe('a hub as a systemd service', () => {
  it('an installed hub has no capability, can not gain one, and can write only to its own directories', async () => {
    const pid = await hub.machine.property('latchkey', 'MainPID');
    const status = await hub.machine.sh(`cat /proc/${pid}/status`);
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)?.[1];
    expect(field('Uid')).not.toBe('0');
    expect(['NoNewPrivs', 'Seccomp', 'CapEff', 'CapBnd', 'CapPrm'].map(field)).toEqual([
      '1',
      '2',
      ...Array(3).fill('0000000000000000'),
    ]);
    const within = `nsenter --target ${pid} --mount setpriv --reuid ${field('Uid')} --regid ${field('Gid')} --clear-groups`;
    const writable = await hub.machine.sh(
      `${within} find / -path /proc -prune -o -writable '(' -type d -o -type f ')' -print 2>/dev/null || true`,
    );
    const own = /^\/(var\/(lib|cache)\/(private\/)?latchkey|run\/latchkey|tmp|var\/tmp|dev)(\/|$)/;
    expect(writable.split('\n').filter((path) => !own.test(path))).toEqual([]);
    expect(await hub.machine.sh(`stat -c '%a %G' /run/latchkey/control.sock`)).toBe('660 latchkey-admin');
    expect(await hub.machine.sh(`stat -c '%a' /var/lib/private/latchkey`)).toBe('700');
  });

  it('an installed hub has all its grants after it was killed', async () => {
    const before = await hub.token(wallbox);
    const restarts = Number(await hub.machine.property('latchkey', 'NRestarts'));
    await hub.machine.sh('systemctl kill --kill-whom=main --signal=KILL latchkey');
    await eventually(async () => Number(await hub.machine.property('latchkey', 'NRestarts')) === restarts + 1);
    await hub.until('active');
    expect((await hub.appliance('wallbox')).state).toBe('active');
    const after = await hub.token(wallbox);
    expect(await hub.whoami(String(after['access_token']))).toBe('200');
    expect(after['access_token']).toBe(before['access_token']);
  });

  it('systemd restarts an installed hub whose event loop is blocked, and the journal says why', async () => {
    await hub.machine.write('/run/systemd/system/latchkey.service.d/watchdog.conf', '[Service]\nWatchdogSec=3\n');
    await hub.machine.sh('systemctl daemon-reload; systemctl restart latchkey');
    const pid = await hub.machine.property('latchkey', 'MainPID');
    await block(pid);
    await eventually(async () => !['0', pid].includes(await hub.machine.property('latchkey', 'MainPID')), 20);
    await hub.until('active');
    expect(await hub.machine.journal('latchkey')).toContainEqual(
      expect.stringMatching(/Watchdog timeout \(limit 3s\)/),
    );
    expect((await hub.appliance('wallbox')).state).toBe('active');
    await hub.machine.sh(
      'rm -r /run/systemd/system/latchkey.service.d; systemctl daemon-reload; systemctl restart latchkey',
    );
  });

  it('an installed hub reloads a changed configuration without dropping a pairing', async () => {
    await hub.addAppliance('heat-pump');
    const link = await hub.beginPairing('heat-pump');
    const pid = await hub.machine.property('latchkey', 'MainPID');
    await hub.machine.sh(`sed -i 's/^name = .*/name = "Attic hub"/' ${CONFIGURATION_FILE}`);
    await hub.machine.sh('systemctl reload latchkey');
    expect((await hub.status()).hub.name).toMatch(/^Attic hub/);
    expect(await hub.machine.property('latchkey', 'MainPID')).toBe(pid);
    expect((await hub.appliance('heat-pump')).authorize_url).toBe(link.href);
    expect(await hub.logIn(link)).toContain('is connected');
    expect((await hub.appliance('heat-pump')).state).toBe('active');
    expect(await hub.token(wallbox)).toHaveProperty('access_token');
  });

  it('a reload after a credential file has changed is rejected with one line, until the file has its contents again', async () => {
    const right = await hub.machine.sh(`cat ${SECRET_FILE}`);
    await hub.machine.write(SECRET_FILE, 'another-secret\n', '600');
    await hub.machine.sh(`sed -i 's/^name = .*/name = "Garden hub"/' ${CONFIGURATION_FILE}`);
    const warning = new RegExp(
      `credentials were changed after the hub was started .*${SECRET_FILE}.*systemctl restart latchkey`,
    );
    expect((await hub.machine.run('systemctl reload latchkey')).status).not.toBe(0);
    expect(await hub.machine.journal('latchkey')).toContainEqual(expect.stringMatching(warning));
    expect(await hub.latchkey('reload')).toMatchObject({ status: 1, stdout: '', stderr: lineMatching(warning) });
    expect((await hub.status()).hub.name).toMatch(/^Attic hub/);

    await hub.machine.write(SECRET_FILE, `${right}\n`, '600');
    expect(await hub.latchkey('reload')).toMatchObject({ status: 0, stderr: '' });
    expect((await hub.status()).hub.name).toMatch(/^Garden hub/);
    const withoutRoot = await hub.latchkey('reload', 'householder');
    expect(withoutRoot).toMatchObject({ status: 0, stderr: lineMatching(/only root can check .* restart/) });
    // The reload runs as root, and must not use a folder that the service could have prepared.
    expect(await hub.machine.sh('find /var/cache/private/latchkey -user root')).toBe('');
  });

  it('a service with credentials of its own, and one that may administer the hub, get tokens as the guide says', async () => {
    const { client_id, client_secret } = await hub.addAppliance('reader');
    await hub.pair('reader');
    const block = (language: string) =>
      readExample('A unit of your own', language, 'docs/programs.md')
        .replaceAll('CLIENT_ID', client_id)
        .replaceAll('https://api.cloud.example/temperature', 'http://127.0.0.1:8490/api/whoami');
    await hub.machine.write('/etc/heating.secret', client_secret, '600');
    await hub.machine.write('/usr/local/bin/read-heating', block('sh'), '755');
    await hub.machine.write('/etc/systemd/system/read-heating.service', block('ini'));
    await hub.machine.sh(`printf '[local]\\nport = 8481\\n' >> ${CONFIGURATION_FILE}; systemctl reload latchkey`);
    await hub.machine.sh('systemctl daemon-reload; systemctl start read-heating', { seconds: 30 });
    expect(await hub.machine.journal('read-heating')).toContainEqual(expect.stringContaining('"user":"demo"'));
    const properties = '--property=DynamicUser=yes --property=SupplementaryGroups=latchkey-admin';
    const token = await hub.machine.sh(
      `systemd-run --quiet --wait --pipe ${properties} latchkey token reader --min-ttl 5m`,
    );
    expect(await hub.whoami(token)).toBe('200');
  });

  it('an installed hub sends a goodbye when it is stopped, and completes a refresh that has begun', async () => {
    const observer = await observeWithZeroconf(hub.peer);
    const { instanceName } = await observer.found();
    const { access_token: before } = await hub.token(wallbox);
    await hub.emulator('POST', 'faults', { endpoint: 'token', kind: 'delay', seconds: 3 });
    await hub.machine.sh('systemd-run --quiet latchkey refresh wallbox');
    await eventually(async () => (await pendingRefreshes()) === 1);
    await hub.machine.sh('systemctl stop latchkey', { seconds: 30 });
    await observer.gone(instanceName);
    expect(await pendingRefreshes()).toBe(0);
    expect(await hub.machine.property('latchkey', 'Result')).toBe('success');
    await hub.start();
    const { access_token: after } = await hub.token(wallbox);
    expect(after).not.toBe(before);
    expect(await hub.whoami(String(after))).toBe('200');
    expect((await hub.appliance('wallbox')).problem).toBeNull();
  });
});

/** The number of refresh requests that the portal has received and not answered. */
async function pendingRefreshes(): Promise<number> {
  const { requests } = await hub.emulator<{ requests: readonly LoggedRequest[] }>('GET', 'requests');
  return requests.filter(({ form, status }) => form['grant_type'] === 'refresh_token' && status === null).length;
}

/** Blocks the daemon in an endless loop, as a bug in its code would, through Node's debugger. */
async function block(pid: string): Promise<void> {
  const script = `
    const [{ webSocketDebuggerUrl }] = await (await fetch('http://127.0.0.1:9229/json')).json();
    const socket = new WebSocket(webSocketDebuggerUrl);
    socket.onopen = () => {
      socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'for (;;);' } }));
      setTimeout(() => process.exit(), 500);
    };`;
  await hub.machine.sh(`kill -USR1 ${pid}`);
  await eventually(async () => (await hub.machine.run('curl -sf http://127.0.0.1:9229/json')).status === 0);
  await hub.machine.sh('/usr/lib/latchkey/bin/node --input-type=module -', { input: script });
}

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
