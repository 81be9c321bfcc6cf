import { expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { startOn } from '../command.ts';
import type { RunningCommand } from '../running-command.ts';
import { eventsIn as lines, logInAtLink } from './pair-all-session.ts';

const users = ['demo', 'guest'].map((name) => ({ name, password: name }));
let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ users }));
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
});

const pairAll = (...args: string[]) => startOn(hub, 'pair', '--all', ...args);
const logIn = (running: RunningCommand, connection: string, user?: string) =>
  logInAtLink(emulator, running, connection, user);

test('pair --all shows one link after another, and its events name the appliance', async () => {
  await hub.addAppliance('battery', 'Monitoring');
  await hub.addAppliance('wallbox', 'Monitoring');
  const running = pairAll('--json');
  await logIn(running, 'battery');
  await logIn(running, 'wallbox');
  const { status, stdout, stderr } = await running.ended;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(lines(stdout)).toMatchObject([
    { event: 'waiting', appliance: 'battery', expires_in: expect.any(Number) },
    { event: 'paired', appliance: 'battery', scope: 'Monitoring' },
    { event: 'waiting', appliance: 'wallbox' },
    { event: 'paired', appliance: 'wallbox', scope: 'Monitoring' },
    { event: 'done', connected: ['battery', 'wallbox'], left_out: [] },
  ]);
});

test('pair --all skips an appliance whose pairing fails, and names it with the reason at the end', async () => {
  await hub.addAppliance('heat-pump', 'Monitoring');
  await hub.addAppliance('meter', 'Monitoring');
  const running = pairAll('--json');
  await running.stdout(/"waiting","appliance":"heat-pump"/);
  await hub.ask((control) => control.request('unpair', { name: 'heat-pump' }));
  await logIn(running, 'meter');
  const { status, stdout, stderr } = await running.ended;
  expect(status).toBe(1);
  expect(lines(stdout).at(-1)).toEqual({
    event: 'done',
    connected: ['battery', 'meter', 'wallbox'],
    left_out: [{ name: 'heat-pump', reason: 'cancelled' }],
  });
  expect(stderr).toContain(
    '3 of 4 appliances are connected; not connected: heat-pump (cancelled); run "latchkey pair --all" again',
  );
});

test('pair --all --timeout ends only the command, and the next pair --all shows the same link', async () => {
  const first = await pairAll('--json', '--timeout', '3').ended;
  expect(first.status).toBe(1);
  expect(first.stderr).toContain('heat-pump is not connected yet');
  const again = pairAll('--json');
  const [shown] = lines(await again.stdout(/\n/));
  expect(shown?.['authorize_url']).toBe(lines(first.stdout)[0]?.['authorize_url']);
  await logIn(again, 'heat-pump');
  expect((await again.ended).status).toBe(0);
  await eventually(async () => (await hub.appliance('heat-pump')).state === 'active');
});

test('pair --all warns of two accounts and succeeds, and status shows the account of each appliance', async () => {
  emulator.change({ idToken: true });
  for (const { name } of (await hub.status()).appliances)
    await hub.ask((control) => control.request('removeAppliance', { name }));
  await hub.addAppliance('battery', 'Monitoring');
  await hub.addAppliance('wallbox', 'Monitoring');
  const running = pairAll('--json');
  await logIn(running, 'battery');
  await logIn(running, 'wallbox', 'guest');
  const { status, stdout, stderr } = await running.ended;
  expect(status).toBe(0);
  expect(stderr).toContain('connected with different accounts: battery (demo), wallbox (guest)');
  expect(lines(stdout).at(-1)).toEqual({ event: 'done', connected: ['battery', 'wallbox'], left_out: [] });
  expect((await hub.status()).appliances.map(({ name, account }) => [name, account])).toEqual([
    ['battery', 'demo'],
    ['wallbox', 'guest'],
  ]);
  const shown = await startOn(hub, 'status').ended;
  expect(shown.stdout).toMatch(/REFRESHED +ACCOUNT$/m);
  expect(shown.stdout).toMatch(/^wallbox .* guest$/m);
});
