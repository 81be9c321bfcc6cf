import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runHousehold, shell } from './command.ts';

let hub: Awaited<ReturnType<typeof runHousehold>>;

beforeAll(async () => {
  hub = await runHousehold();
});

afterAll(() => hub[Symbol.asyncDispose]());

beforeEach(() => hub.household.appliances.clear());

test('invite --json shows the token once, under the names of the contract', async () => {
  const args = ['invite', '--for', 'wallbox', '--scope', 'A B', '--portal', 'home', '--ttl', '90m', '--json'];
  const made = await hub.latchkey(...args);
  expect(made).toMatchObject({ status: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toEqual({
    token: hub.household.issued.at(-1),
    name: 'wallbox',
    scope: 'A B',
    expires_in: 5400,
    registration_endpoint: 'https://192.168.1.7:8443/oauth/register',
    ca_fingerprint: 'pin-of-the-ca',
  });
  expect(hub.household.invites.at(-1)).toEqual({ name: 'wallbox', scope: 'A B', portal: 'home', ttl: 5400 });
});

test('an invite for anybody is good for an hour, and a person gets a curl command that is ready to copy', async () => {
  const made = await hub.latchkey('invite');
  const token = hub.household.issued.at(-1);
  expect(hub.household.invites.at(-1)).toEqual({ name: null, scope: null, portal: null, ttl: 3600 });
  expect(made).toMatchObject({ status: 0, stderr: '' });
  expect(made.stdout).toMatch(/^One appliance may register within 60 min, and needs no approval/);
  expect(made.stdout).toContain(`token                  ${token}   (shown this once)`);
  const example = made.stdout.slice(made.stdout.indexOf('  curl '));
  const words = await shell(`curl() { printf '%s\\n' "$@"; }; ${example}`);
  expect(words.stdout.trimEnd().split('\n')).toEqual([
    '--cacert',
    'latchkey-ca.pem',
    '--header',
    `Authorization: Bearer ${token}`,
    '--header',
    'Content-Type: application/json',
    '--data',
    '{"client_name":"My appliance"}',
    'https://192.168.1.7:8443/oauth/register',
  ]);
});

test('registration is opened for ten minutes, or as long as is said, shown by status, and closed', async () => {
  expect(await hub.latchkey('registration', 'open')).toMatchObject({
    status: 0,
    stdout: '',
    stderr: /open for 10 min/,
  });
  expect(hub.household.hub.registration_open_for).toBe(600);
  expect(await hub.latchkey('registration', 'open', '--for', '2h')).toMatchObject({ status: 0 });
  expect(hub.household.hub.registration_open_for).toBe(7200);
  expect((await hub.latchkey('status')).stdout).toMatch(/^registration +open to any appliance for another 2 h$/m);
  expect(JSON.parse((await hub.latchkey('status', '--json')).stdout).hub.registration_open_for).toBe(7200);
  expect(await hub.latchkey('registration', 'close')).toMatchObject({ status: 0, stdout: '', stderr: /is closed/ });
  expect((await hub.latchkey('status')).stdout).not.toMatch(/^registration/m);
});

test('who waits for approval stands out in the list, with what to type, and can move no cursor', async () => {
  const since = new Date(Date.now() - 300_000).toISOString();
  const waiting = { since, software_id: 'acme\u001b[2J/1' };
  const { client_id } = hub.household.set({ name: 'wallbox', waiting_for_approval: waiting });
  const { stdout } = await hub.latchkey('appliance', 'list');
  expect(stdout).toMatch(/^wallbox +waits for approval/m);
  expect(stdout).toContain(`wallbox: introduced itself 5 min ago as client_id ${client_id}, says its software is acme`);
  expect(stdout).toContain('latchkey appliance approve wallbox, else: latchkey appliance remove wallbox');
  expect(stdout).not.toContain('\u001b');
  expect(stdout).not.toContain('latchkey pair wallbox');
});

test('approve says what is next, or prints the status', async () => {
  const waiting_for_approval = { since: '2031-05-05T06:00:00Z', software_id: null };
  hub.household.set({ name: 'wallbox', waiting_for_approval });
  expect(await hub.latchkey('appliance', 'approve', 'wallbox')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('latchkey pair wallbox'),
    stderr: '',
  });
  hub.household.set({ name: 'heater', waiting_for_approval });
  const approved = JSON.parse((await hub.latchkey('appliance', 'approve', 'heater', '--json')).stdout);
  expect(approved).toEqual(hub.household.appliances.get('heater'));
  expect(approved).not.toHaveProperty('waiting_for_approval');
});

test('what nobody can ask for, and what is configured with another scope by now, is said with what to do', async () => {
  hub.household.set({ name: 'gone', state: 'active', without_credentials: true });
  hub.household.set({ name: 'moved', state: 'active', scope: 'A', wanted_scope: 'B' });
  hub.household.set({ name: 'bare', state: 'active', scope: 'A', wanted_scope: null });
  const { stdout } = await hub.latchkey('appliance', 'list');
  expect(stdout).toMatch(
    /^gone: nobody can ask for its token.*rotate-secret gone, or latchkey appliance remove gone$/m,
  );
  expect(stdout).toMatch(/^moved: it is configured with the scope B by now.*latchkey pair moved$/m);
  expect(stdout).toMatch(/^bare: it is configured with no scope by now.*latchkey pair bare$/m);
});

test.each([
  [['invite', '--for', 'Wallbox'], /"Wallbox" can't be/],
  [['invite', '--for', 'heater'], /heater exists/],
  [['invite', '--scope', 'ä'], /the scope "ä"/],
  [['invite', '--portal', 'x'], /no portal x/],
  [['appliance', 'approve', 'heater'], /waits for no approval/],
  [['appliance', 'approve', 'toaster'], /no appliance toaster/],
])('%j fails with one clear line', async (args, problem) => {
  hub.household.set({ name: 'heater' });
  const failed = await hub.latchkey(...args);
  expect(failed).toMatchObject({ status: 1, stdout: '' });
  expect(failed.stderr).toMatch(problem);
  expect(failed.stderr).toMatch(/^latchkey: [\P{Cc}]{1,400}\n$/u);
});

test('a person is asked whether to refuse one that waits, and not about one that is not there', async () => {
  hub.household.set({ name: 'wallbox', waiting_for_approval: { since: '2031-05-05T06:00:00Z', software_id: null } });
  const running = hub.onTerminal('appliance', 'remove', 'wallbox');
  await running.stdout(/Refuse wallbox, which waits for approval\? \[y\/N\] /);
  running.process.stdin?.write('y\r');
  expect((await running.ended).status).toBe(0);
  const { status, stdout } = await hub.onTerminal('appliance', 'remove', 'toaster').ended;
  expect(status).toBe(1);
  expect(stdout).toMatch(/^latchkey: there is no appliance toaster/);
});
