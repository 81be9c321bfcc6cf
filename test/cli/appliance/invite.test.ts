import { beforeEach, expect, test } from 'vitest';
import { waitingForApproval } from '../../support/registration-samples.ts';
import { shareFakeAdministration } from '../command.ts';

const hub = shareFakeAdministration();

beforeEach(() => hub.administration.appliances.clear());

test('invite --json shows the token once, under the documented member names', async () => {
  const args = ['invite', '--for', 'wallbox', '--scope', 'A B', '--portal', 'home', '--ttl', '90m', '--json'];
  const made = await hub.latchkey(...args);
  expect(made).toMatchObject({ status: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toEqual({
    token: hub.administration.issued.at(-1),
    name: 'wallbox',
    scope: 'A B',
    expires_in: 5400,
    registration_endpoint: 'https://192.168.1.7:8443/oauth/register',
    ca_fingerprint: 'pin-of-the-ca',
  });
  expect(hub.administration.invites.at(-1)).toEqual({
    name: 'wallbox',
    scope: 'A B',
    portal: 'home',
    connection: null,
    ttl: 5400,
  });
});

test('invite for any appliance is valid for an hour and is shown with a curl command', async () => {
  const made = await hub.latchkey('invite');
  const token = hub.administration.issued.at(-1);
  expect(hub.administration.invites.at(-1)).toEqual({
    name: null,
    scope: null,
    portal: null,
    connection: null,
    ttl: 3600,
  });
  expect(made).toMatchObject({ status: 0, stderr: '' });
  expect(made.stdout).toMatch(/^One appliance can register within 60 min, without approval/);
  expect(made.stdout).toContain(`token                  ${token}   (shown only once)`);
  expect(made.stdout).toMatch(/^ {2}export HUB=https:\/\/192\.168\.1\.7:8443 .* PIN=pin-of-the-ca INVITE=\S+$/m);
  expect(/INVITE=(\S+)/.exec(made.stdout)?.[1]).toBe(token);
  // The token goes through standard input, as the secret of "appliance add" does.
  expect(made.stdout).toContain(`header = "Authorization: Bearer ${token}"\n`);
});

test('registration opens for ten minutes or the given time, appears in status, and can be closed', async () => {
  const opened = await hub.latchkey('registration', 'open');
  expect(opened).toMatchObject({ status: 0, stderr: '' });
  expect(opened.stdout).toMatch(/^Registration is open for 10 min/);
  expect(opened.stdout).toContain('registration_endpoint  https://192.168.1.7:8443/oauth/register\n');
  expect(opened.stdout).toContain('ca_fingerprint         pin-of-the-ca\n');
  expect(hub.administration.hub.registrationOpenFor).toBe(600);
  expect(await hub.latchkey('registration', 'open', '--for', '2h')).toMatchObject({ status: 0 });
  expect(hub.administration.hub.registrationOpenFor).toBe(7200);
  expect((await hub.latchkey('status')).stdout).toMatch(/^registration +open to any appliance for another 2 h$/m);
  expect(JSON.parse((await hub.latchkey('status', '--json')).stdout).hub.registration_open_for).toBe(7200);
  const json = await hub.latchkey('registration', 'open', '--for', '90s', '--json');
  expect(JSON.parse(json.stdout)).toEqual({ open_for: 90 });
  const closed = { status: 0, stdout: '', stderr: expect.stringMatching(/is closed/) };
  expect(await hub.latchkey('registration', 'close')).toMatchObject(closed);
  expect((await hub.latchkey('status')).stdout).not.toMatch(/^registration/m);
});

test('invite draws a QR code only on a terminal', async () => {
  const { stdout } = await hub.onTerminal('invite').ended;
  expect(stdout).toContain(`token                  ${hub.administration.issued.at(-1)}`);
  expect(stdout).toContain('█');
  expect((await hub.latchkey('invite')).stdout).not.toContain('█');
  expect((await hub.onTerminal('invite', '--json').ended).stdout).not.toContain('█');
});

test('appliance list shows an appliance that waits for approval with the commands to type, and escapes its text', async () => {
  const since = new Date(Date.now() - 300_000).toISOString();
  const waiting = waitingForApproval({ since, softwareId: 'acme\u001b[2J/1' });
  const { clientId } = hub.administration.set({ name: 'wallbox', waitingForApproval: waiting });
  const { stdout } = await hub.latchkey('appliance', 'list');
  expect(stdout).toMatch(/^wallbox +waits for approval/m);
  expect(stdout).toContain(
    `wallbox: asked to join 5 min ago from 192.168.1.20, client_id ${clientId}, reports the software acme`,
  );
  expect(stdout).toMatch(/^ {2}its code is KFD-WQX: compare it with the one that the appliance shows$/m);
  expect(stdout).toMatch(/^ {2}if it is yours: latchkey appliance approve wallbox --code KFD-WQX$/m);
  expect(stdout).toMatch(/^ {2}if it is not: {3}latchkey appliance remove wallbox$/m);
  expect(stdout).not.toContain('\u001b');
  expect(stdout).not.toContain('latchkey pair wallbox');
});

test('appliance approve prints code and address of the appliance, and refuses it with another --code', async () => {
  hub.administration.set({ name: 'wallbox', waitingForApproval: waitingForApproval() });
  expect(await hub.latchkey('appliance', 'approve', 'wallbox', '--code', 'KFD-WQZ')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/the code of wallbox differs/),
  });
  expect(hub.administration.appliances.get('wallbox')).toHaveProperty('waitingForApproval');
  const approved = await hub.latchkey('appliance', 'approve', 'wallbox', '--code', 'KFD-WQX');
  expect(approved).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(
      /wallbox \(code KFD-WQX, which asked from 192\.168\.1\.20\) is approved[\s\S]*latchkey pair wallbox/,
    ),
  });
  expect(hub.administration.appliances.get('wallbox')).not.toHaveProperty('waitingForApproval');
});

test('appliance list counts the appliances that asked to join, and approve asks about the code if there are several', async () => {
  hub.administration.set({ name: 'wallbox', waitingForApproval: waitingForApproval() });
  expect((await hub.latchkey('appliance', 'list')).stdout).not.toContain('have asked to join');
  const { administration } = hub;
  const before = administration.hub;
  administration.hub = { ...administration.hub, registrationAsked: 7 };
  for (const command of [['appliance', 'list'], ['status']]) {
    expect((await hub.latchkey(...command)).stdout).toMatch(
      /^7 appliances have asked to join .* the same code as this list$/m,
    );
  }
  const approve = async (...more: string[]) => {
    const running = hub.onTerminal('appliance', 'approve', 'wallbox', ...more);
    if (more.length === 0) {
      await running.stdout(
        /7 appliances asked to join. Does your appliance show the code KFD-WQX\? It is the code of wallbox.*\. \[y\/N\] /,
      );
      running.process.stdin?.write('n\r');
    }
    return (await running.ended).status;
  };
  expect(await approve()).toBe(1);
  // Without a terminal nobody compares the code.
  expect(await hub.latchkey('appliance', 'approve', 'wallbox')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/7 appliances asked to join, and wallbox was not approved: add --code/),
  });
  expect(hub.administration.appliances.get('wallbox')).toHaveProperty('waitingForApproval');
  expect(await approve('--code', 'KFD-WQX')).toBe(0);
  administration.hub = before;
});

test('appliance list says what to do about missing credentials and about a changed scope', async () => {
  hub.administration.set({ name: 'gone', state: 'active', withoutCredentials: true });
  hub.administration.set({ name: 'broken', state: 'active', withoutCredentials: true, credentialsDamaged: true });
  hub.administration.set({ name: 'moved', state: 'active', scope: 'A', wantedScope: 'B' });
  const open = { authorizeUrl: 'https://portal.example/a' };
  hub.administration.set({ name: 'going', state: 'active', scope: null, wantedScope: 'B C', ...open });
  const { stdout } = await hub.latchkey('appliance', 'list');
  expect(stdout).toContain(`
gone gets no tokens, because it is no longer in the configuration. Add it to the configuration again, give it a secret ("latchkey appliance rotate-secret gone") or remove it ("latchkey appliance remove gone").
broken gets no tokens, because its entry in the store was damaged, or something other than the hub changed it. Run "latchkey appliance remove broken", then add it again and pair it.
moved: its configured scope was changed to B; until somebody logs in again, it keeps A: latchkey pair moved
going: its configured scope was changed to B C; until somebody logs in again, it keeps no scope
going: log in at https://portal.example/a
`);
});

test('appliance remove asks whether to refuse an appliance that waits, and not about an unknown one', async () => {
  hub.administration.set({ name: 'wallbox', waitingForApproval: waitingForApproval() });
  expect(
    (
      await hub
        .onTerminal('appliance', 'remove', 'wallbox')
        .reply(/Refuse wallbox, which is waiting for approval\? \[y\/N\] /, 'y\r')
    ).status,
  ).toBe(0);
  const { status, stdout } = await hub.onTerminal('appliance', 'remove', 'toaster').ended;
  expect(status).toBe(1);
  expect(stdout).toMatch(/^latchkey: there is no appliance toaster/);
});
