import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { ConnectionResponse, CredentialsResponse } from '../../../src/control/messages.ts';
import { whoami } from '../../reliability/load.ts';
import { HubProcess, type ProcessResult } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { OtherClient } from '../../support/other-client.ts';
import { startPortal } from '../../support/portal.ts';
import { MAIN } from '../../support/program.ts';

/** Runs `latchkey connection import`. @param input what it reads from standard input */
async function importGrant(hub: HubProcess, input: string, ...args: string[]): Promise<ProcessResult> {
  const command = [MAIN, 'connection', 'import', ...args, '--config', `${hub.directory}/latchkey.toml`];
  const child = spawn(process.execPath, command, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(input);
  const ended = new Promise<number>((resolve) => child.once('exit', (status) => resolve(status ?? -1)));
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}

async function addTo(hub: HubProcess, name: string, connection: string): Promise<CredentialsResponse> {
  const credentials = await hub.json<CredentialsResponse>('appliance', 'add', name, '--connection', connection);
  rememberSecrets([credentials.client_secret]);
  return credentials;
}

describe('latchkey connection', () => {
  it('appliances of one connection are connected by one login, and each keeps its own credentials', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    expect(await hub.json('connection', 'add', 'heating', '--scope', 'Monitoring')).toEqual({
      name: 'heating',
      portal: 'home',
      scope: 'Monitoring',
      state: 'unpaired',
    });
    const thermostat = await addTo(hub, 'thermostat', 'heating');
    const dashboard = await addTo(hub, 'dashboard', 'heating');
    await hub.pair('heating', emulator);
    const tokens = await Promise.all([thermostat, dashboard].map((each) => hub.requestToken(each)));
    expect(tokens).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(tokens[0]?.body['access_token']).toBe(tokens[1]?.body['access_token']);
    expect(emulator.grants()).toHaveLength(1);
    const [heating] = await hub.json<ConnectionResponse[]>('connection', 'list');
    expect(heating).toMatchObject({ state: 'active', appliances: ['dashboard', 'thermostat'], login_ends: null });
    expect(await hub.appliance('thermostat')).toMatchObject({ state: 'active', connection: 'heating' });

    await hub.cli('appliance', 'remove', 'dashboard');
    expect(await hub.requestToken(dashboard)).toMatchObject({ status: 401 });
    expect(await hub.requestToken(thermostat)).toMatchObject({ status: 200 });
    const rotated = await hub.json<CredentialsResponse>('appliance', 'rotate-secret', 'thermostat');
    rememberSecrets([rotated.client_secret]);
    expect(await hub.requestToken(rotated)).toMatchObject({ status: 200 });
    await hub.cli('unpair', 'heating');
    expect(await hub.requestToken(rotated)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });

    // An appliance that moves to it leaves its own login behind.
    await hub.pair('heating', emulator);
    const wallbox = await hub.addAppliance('wallbox', 'Monitoring');
    await hub.pair('wallbox', emulator);
    const moved = await hub.cli('appliance', 'move', 'wallbox', '--connection', 'heating');
    expect(moved).toMatchObject({ status: 0, stdout: 'wallbox uses the connection heating now.\n' });
    expect(moved.stderr).toContain('latchkey connection remove wallbox');
    const { access_token } = await hub.ask((control) => control.request('token', { name: 'heating' }));
    expect((await hub.requestToken(wallbox)).body).toMatchObject({ access_token });
    expect(await hub.cli('connection', 'remove', 'wallbox')).toMatchObject({ status: 0 });
    expect(await hub.cli('connection', 'remove', 'heating', '--yes')).toMatchObject({ status: 0 });
    // Its credentials stay; it needs a login of its own.
    expect(await hub.requestToken(wallbox)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    await hub.pair('wallbox', emulator);
    expect(await hub.requestToken(wallbox)).toMatchObject({ status: 200 });
  });

  it('a command about a connection that is wrong fails with one clear line and changes nothing', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    await hub.addConnection('shared', 'Monitoring');
    await hub.addAppliance('user', null, null, 'shared');
    await hub.addAppliance('heater', 'RemoteControl');
    const before = await hub.status();
    const cases: readonly [command: string, message: RegExp][] = [
      [`connection add ${'x'.repeat(65)}`, /is not a valid connection name/],
      ['connection add shared', /there is a connection shared already/],
      ['connection add other --portal nowhere', /there is no portal nowhere/],
      ['connection remove shared', /user uses the connection shared: move or remove it first, or add --yes/],
      ['appliance add lamp --connection nothing', /there is no connection nothing/],
      [
        'appliance add lamp --connection shared --scope Other',
        /lamp has the scope "Other", and the connection shared has "Monitoring"/,
      ],
      [
        'appliance move heater --connection shared',
        /heater has the scope "RemoteControl", and the connection shared has "Monitoring"/,
      ],
      ['pair user', /the appliance user uses the connection shared/],
      ['appliance add shared', /there is a connection shared already: add --connec/],
    ];
    for (const [command, message] of cases) {
      const { status, stderr } = await hub.cli(...command.split(' '));
      expect({ status, stderr }, command).toEqual({ status: 1, stderr: expect.stringMatching(message) });
      expect(stderr.trim().split('\n'), command).toHaveLength(1);
    }
    expect({ ...(await hub.status()), hub: null }).toEqual({ ...before, hub: null });
  });
});

it('the hub takes over the login of another client, and a refused token leaves nothing behind', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, here: true });
  for (const input of ['', 'two words', 'two\nlines']) {
    const { status, stderr } = await importGrant(hub, input, 'cloud');
    expect([status, stderr.trim().split('\n').length]).toEqual([1, 1]);
    expect(stderr).toContain('nothing was done');
  }
  expect(emulator.requests.filter(({ endpoint }) => endpoint === 'token')).toEqual([]);
  const refused = await importGrant(hub, 'not-a-token-of-this-portal', 'cloud');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toMatch(/does not accept this refresh token.*nothing was kept/);
  expect((await hub.cli('connection', 'list', '--json')).stdout).toBe('[]\n');

  const other = await OtherClient.logIn(emulator);
  expect(await other.refresh()).toBe(200);
  const imported = await importGrant(hub, `${other.refreshToken}\n`, 'cloud', '--scope', 'Monitoring');
  expect(imported, imported.stderr).toMatchObject({ status: 0, stderr: '' });
  expect(imported.stdout).toContain('Stop the other program now');
  expect(imported.stdout).not.toContain(other.refreshToken);
  expect(await other.refresh()).toBe(400);
  const user = await addTo(hub, 'thermostat', 'cloud');
  for (let round = 0; round < 3; round++) {
    await hub.ask((control) => control.request('refresh', { name: 'cloud' }));
    const { status, body } = await hub.requestToken(user);
    expect(status).toBe(200);
    expect(await whoami(emulator, body['access_token'])).toBe(200);
  }
  expect(await hub.json('history', 'cloud')).toMatchObject([{ kind: 'refreshed', count: 3 }, { kind: 'paired' }]);

  // A paired connection keeps its grant without --yes, and if the other token is refused.
  const third = await OtherClient.logIn(emulator);
  const kept = await importGrant(hub, third.refreshToken, 'cloud');
  expect(kept.status).toBe(1);
  expect(kept.stderr).toContain('run the command again with --yes');
  expect(await third.refresh()).toBe(200);
  expect(await importGrant(hub, 'not-a-token-of-this-portal', 'cloud', '--yes')).toMatchObject({ status: 1 });
  expect(await hub.ask((control) => control.request('refresh', { name: 'cloud' }))).toMatchObject({ state: 'active' });
  expect(await importGrant(hub, third.refreshToken, 'cloud', '--yes', '--json')).toMatchObject({ status: 0 });
  expect(await third.refresh()).toBe(400);
});
