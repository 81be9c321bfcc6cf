import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { NamedCheckResult } from '../../../src/doctor/check-result.ts';
import { spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { CONFIGURATION_FILE, InstalledHub, lineMatching, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

/** What a hook can and can't do under systemd, according to docs/notices.md. */
const HOOK = `#!/bin/sh
{
  cat
  touch /var/lib/latchkey/kept && touch /tmp/kept && echo it writes its own
  touch /etc/latchkey/kept 2>/dev/null || echo it writes nothing else
  cat /etc/latchkey/credentials/portal-home.secret 2>/dev/null || echo it reads no credentials there
  curl -s -o /dev/null -w 'the network answers %{http_code}\\n' http://127.0.0.1:8490/api/whoami
  env | grep -c -e LATCHKEY -e CREDENTIALS
} > /var/lib/latchkey/told
echo bye >&2
`;
const METRICS = 'http://127.0.0.1:9480';

/**
 * One machine with a hub that was started for the first time. The tests follow the installer's steps, in order; from the
 * pairing on, each leaves a running hub with that grant.
 */
let hub: InstalledHub;
let wallbox: CredentialsResponse;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  hub = parts.use(await InstalledHub.bootInstalled(await buildPackage(), { emulator: 'token_lifetime = "600s"' }));
  // The form that docs/notices.md describes for secrets.
  await hub.machine.write('/etc/latchkey/notify.env', 'LATCHKEY_NOTIFY_COMMAND=./notify\n', '600');
  await hub.machine.write(
    '/etc/systemd/system/latchkey.service.d/notify.conf',
    '[Service]\nEnvironmentFile=/etc/latchkey/notify.env\n',
  );
  await hub.machine.sh('systemctl daemon-reload');
  await hub.machine.write('/etc/latchkey/notify', HOOK, '755');
  await hub.machine.sh('useradd installer --groups latchkey-admin; useradd guest');
  await hub.start();
});

it('root and latchkey-admin can read the setup code of an installed hub, and the log only says where to find it', async () => {
  const { status, stdout: code } = await hub.latchkey('setup-code');
  expect({ status, code }).toEqual({ status: 0, code: expect.stringMatching(/^(-?[A-Z]{4}){4}\n$/) });
  rememberSecrets([code.trim()]);
  expect(await hub.latchkey('setup-code', 'installer')).toMatchObject({ status: 0, stdout: code });
  expect(await hub.latchkey('setup-code', 'guest')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: lineMatching(/latchkey-admin/),
  });
  expect((await hub.logged('page_never_opened')).at(-1)).toMatchObject({
    what_to_do: expect.stringContaining('latchkey setup-code'),
  });
  expect((await hub.machine.journal('latchkey')).join('\n')).not.toContain(code.trim());
});

describe('the doctor of an installed hub', () => {
  /** What the doctor reports to a user, and the lines of it that are not "ok". */
  async function runDoctor(user: string) {
    const { status, stdout } = await hub.latchkey('doctor --json', user);
    const { checks } = JSON.parse(stdout) as { checks: readonly NamedCheckResult[] };
    const lines = checks.map(({ name, result, detail }) => `${result} ${name}: ${detail}`);
    return { status, lines, notOk: lines.filter((line) => !line.startsWith('ok ')) };
  }

  it('the doctor finds nothing wrong with an installed hub, whichever user runs it', async () => {
    wallbox = await hub.addAppliance('wallbox');
    await hub.pair('wallbox');
    const [root, installer, guest] = await Promise.all(['root', 'installer', 'guest'].map(runDoctor));
    expect([root, installer, guest].map((one) => one?.status)).toEqual([0, 0, 0]);
    const noRoute = expect.stringMatching(/^warn network: .*no default route/);
    expect(root?.notOk).toEqual([noRoute]);
    expect(root?.lines).toContain('ok notify.command: notices are passed to the program notify');
    const denied = (name: string) => expect.stringMatching(new RegExp(`^warn ${name}: .*sudo`));
    const notReadable = ['configuration.secrets', 'credentials', 'state', 'disk.state'].map(denied);
    expect(installer?.notOk).toEqual([...notReadable, noRoute]);
    expect(guest?.notOk).toEqual(
      expect.arrayContaining([...notReadable, noRoute, ...['hub', 'store', 'ports', 'metrics'].map(denied)]),
    );
  });
});

it('an installed hub runs a notice command inside the sandbox of its service', async () => {
  expect(await hub.latchkey('notify --test')).toMatchObject({ status: 0, stdout: 'command notify: ok (done)\n' });
  const [message = '', ...lines] = (await hub.machine.sh('cat /var/lib/private/latchkey/told')).split('\n');
  expect(JSON.parse(message)).toMatchObject({ notice: 'test', hub: { name: 'Cellar hub' } });
  expect(lines).toEqual([
    'it writes its own',
    'it writes nothing else',
    'it reads no credentials there',
    'the network answers 401',
    '0',
  ]);
});

it('an installed hub serves its metrics inside its sandbox, including those that the kernel counts', async () => {
  const metrics = await hub.machine.sh(`curl -sf ${METRICS}/metrics`);
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  // Nothing of this machine is on a disk.
  expect(value('latchkey_store_written_bytes_total')).toBe(0);
  expect(Math.abs(value('latchkey_clock_offset_seconds'))).toBeLessThan(60);
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e7);
  expect(JSON.parse(await hub.machine.sh(`curl -sf ${METRICS}/readyz`))).toEqual({ ready: true, appliances: [] });
});

it('an installed hub reports an appliance that needs a person by exit status, watched status and notice command', async () => {
  const { grants } = await hub.emulator<{ grants: readonly { id: string }[] }>('GET', 'grants');
  for (const { id } of grants) await hub.emulator('POST', `grants/${id}/revoke`, { what: 'grant' });
  expect((await hub.latchkey('refresh wallbox')).status).toBe(1);
  const status = await hub.latchkey('status', 'installer');
  expect(status).toMatchObject({ status: 3, stdout: expect.stringMatching(/^! wallbox is no longer connected: /) });
  expect(await hub.machine.sh(`curl -sf ${METRICS}/metrics`)).toContain(
    'latchkey_notices{notice="pairing_needed",severity="error",connection="wallbox",appliance="wallbox"} 1',
  );
  await eventually(async () => (await hub.machine.sh('cat /var/lib/private/latchkey/told')).includes('pairing_needed'));
  const watched = await onTerminal('timeout 3 latchkey status --watch');
  expect(watched).toContain('\u001b[?1049h');
  expect(watched).toMatch(/wallbox +.*needs_pairing/);
  await hub.pair('wallbox');
  expect((await hub.latchkey('status')).status).toBe(0);
});

describe('set-ups of the systemd service', () => {
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

/** Runs a command on a terminal. @returns its output */
async function onTerminal(command: string): Promise<string> {
  return (await hub.machine.run(`script -qec 'stty columns 80 rows 40; ${command}' /dev/null`)).stdout;
}
