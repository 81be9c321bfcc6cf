import { beforeEach, expect, test } from 'vitest';
import { toWire } from '../../../src/control/messages.ts';
import type { ProblemCode } from '../../../src/core/reports/problem.ts';
import { connectionsOnWire } from '../../control/status-samples.ts';
import { runShell, shareFakeAdministration, startOnTerminal } from '../command.ts';

const hub = shareFakeAdministration();

beforeEach(() => hub.administration.appliances.clear());

function ago(seconds: number): string {
  return new Date(Date.now() - 1000 * seconds).toISOString();
}

/** The start of colours and cursor movements. */
const ESCAPE = '\u001b[';

test('status --json prints the documented members, and appliance list --json its appliances', async () => {
  const authorizeUrl = 'https://portal.example/a';
  const wallbox = hub.administration.set({ name: 'wallbox', state: 'pairing', authorizeUrl });
  const status = await hub.latchkey('status', '--json');
  expect(status).toMatchObject({ status: 0, stderr: '' });
  const { connections, ...rest } = await hub.administration.status();
  expect(JSON.parse(status.stdout)).toEqual({ ...toWire(rest), connections: connectionsOnWire(connections) });
  expect(JSON.parse((await hub.latchkey('appliance', 'list', '--json')).stdout)).toEqual([toWire(wallbox)]);
});

test('status shows a person the hub, a table, and below it what needs action', async () => {
  hub.administration.set({
    name: 'wallbox',
    state: 'active',
    scope: 'A B',
    expiresIn: 740,
    refreshIn: 30,
    lastRefresh: ago(3 * 3600 + 5),
    authorizeUrl: 'https://192.168.1.7:8443/pair?user_code=WDJB-MJHT',
  });
  hub.administration.set({
    name: 'heatpump',
    state: 'needs_pairing',
    problem: { code: 'refused', message: 'the portal refused the token', since: ago(605) },
  });
  hub.administration.set({ name: 'car', state: 'pairing', authorizeUrl: 'https://portal.example/authorize?x=1' });
  hub.administration.set({ name: 'fridge' });
  const { status, stdout } = await hub.latchkey('status');
  expect(status).toBe(3);
  expect(stdout).toBe(`hub             Cellar hub (latchkey-1a2b3c)
version         0.1.0
address         192.168.1.7
ports           8443 (HTTPS), 8480 (HTTP)
CA fingerprint  pin-of-the-ca
running for     2 h

APPLIANCE  STATE          SCOPE  EXPIRES    REFRESH  REFRESHED
wallbox    active         A B    in 12 min  in 30 s  3 h ago
heatpump   needs_pairing  –      –          –        –
car        pairing        –      –          –        –
fridge     unpaired       –      –          –        –

wallbox: allow the appliance that asks to use this login, at https://192.168.1.7:8443/pair?user_code=WDJB-MJHT
heatpump is no longer connected: the portal refused the token. Noticed 10 min ago. Log in again to connect heatpump: open https://192.168.1.7:8443/appliances/heatpump or run "latchkey pair heatpump".
car: log in at https://portal.example/authorize?x=1
fridge is not paired yet. Log in once to connect it: open https://192.168.1.7:8443/appliances/fridge or run "latchkey pair fridge".
`);
});

test('status ends with 3 if a person is needed, and shows each notice only once, at the top', async () => {
  const since = ago(5);
  const subject = { appliance: 'wallbox', connection: 'wallbox', appliances: ['wallbox'] };
  const what = { ...subject, since, what_to_do: 'Log in again' };
  const problem = (code: ProblemCode) => ({ code, message: 'Something is wrong', since });
  hub.administration.set({ name: 'wallbox', state: 'retrying', problem: problem('portal_unreachable') });
  hub.administration.notices = [
    { ...what, code: 'refresh_failing', severity: 'warning', message: `wallbox${ESCAPE}2J fails` },
  ];
  const warned = await hub.latchkey('status');
  expect(warned).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^! wallbox\ufffd\[2J fails\. Log in again\.\n\nhub /),
  });
  hub.administration.set({ name: 'wallbox', state: 'needs_pairing', problem: problem('refused') });
  const [refused] = (await hub.administration.status()).conditions;
  hub.administration.notices.push({
    ...what,
    code: 'pairing_needed',
    severity: 'error',
    message: 'wallbox is refused',
    what_to_do: refused?.what_to_do ?? '',
  });
  const result = await hub.latchkey('status');
  expect(result).toMatchObject({ status: 3, stdout: expect.stringContaining('! wallbox is refused') });
  expect(result.stdout.match(/Log in again to connect wallbox/g)).toHaveLength(1);
  const json = await hub.latchkey('status', '--json');
  expect(json.status).toBe(3);
  expect(JSON.parse(json.stdout).notices).toEqual(hub.administration.notices);
  expect((await hub.latchkey('appliance', 'list')).status).toBe(0);
  hub.administration.notices = [];
});

test('status shows what an appliance is called beside the name that commands take', async () => {
  hub.administration.set({ name: 'waermepumpe-keller', title: 'Wärmepumpe Keller' });
  const { stdout } = await hub.latchkey('appliance', 'list');
  expect(stdout).toMatch(/^APPLIANCE +TITLE +STATE/);
  expect(stdout).toMatch(/^waermepumpe-keller +Wärmepumpe +unpaired/m);
  expect(stdout).toMatch(/\nWärmepumpe Keller is not paired yet\. .*or run "latchkey pair waermepumpe-keller"/);
  hub.administration.appliances.delete('waermepumpe-keller');
});

test('status shows when each appliance got its last token, and how many it got', async () => {
  hub.administration.set({ name: 'wallbox', lastToken: ago(125), tokens: { today: 12, last14Days: 4030 } });
  hub.administration.set({ name: 'car' });
  const { stdout } = await hub.latchkey('status');
  expect(stdout).toContain(`\n
TOKENS   LAST       TODAY  14 DAYS
wallbox  2 min ago  12     4030
car      never      0      0
`);
  expect((await hub.latchkey('appliance', 'list')).stdout).not.toContain('4030');
});

test('appliance list colours states only on a terminal', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active' });
  expect((await hub.onTerminal('appliance', 'list').ended).stdout).toContain(`${ESCAPE}32mactive${ESCAPE}39m`);
  expect((await hub.latchkey('appliance', 'list')).stdout).not.toContain(ESCAPE);
  const plain = startOnTerminal(['appliance', 'list'], { ...hub.env, NO_COLOR: '1' });
  expect((await plain.ended).stdout).not.toContain(ESCAPE);
});

test('status escapes control characters in text of a portal', async () => {
  hub.administration.set({
    name: 'wallbox',
    state: 'retrying',
    scope: `A${ESCAPE}2J`,
    problem: { code: 'portal_rejected', message: `400\n${ESCAPE}31mowned\u202e`, since: ago(1) },
  });
  const { stdout } = await hub.latchkey('status');
  expect(stdout).not.toMatch(/[\p{Cf}]/u);
  expect(stdout).not.toContain('\u001b');
  expect(stdout).toContain('owned');
});

test('status succeeds if its reader closes the pipe early', async () => {
  for (let index = 0; index < 500; index++)
    hub.administration.set({ name: `appliance-${index}`, scope: 'S'.repeat(200) });
  const piped = await runShell('set -o pipefail; $LATCHKEY status | head -1', hub.env);
  expect(piped).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^hub .*\n$/) });
});

test.skipIf(process.platform !== 'linux')('status fails if its output can not be written', async () => {
  const full = await runShell('$LATCHKEY status --json > /dev/full', hub.env);
  expect(full).toMatchObject({ status: 1, stderr: expect.stringContaining("can't be written") });
});
