import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { jsonOn, startOn } from '../command.ts';
import { unpackDiagnostics } from '../diagnostics-archive.ts';
import { eventsIn as lines, logInAtLink } from '../pair/pair-all-session.ts';

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  const { baseUrl, frontendUrl, clientId } = emulator;
  const away = `[portals.away]
base_url = "${baseUrl}"
frontend_url = "${frontendUrl}"
client_id = "${clientId}"
client_secret_file = "portal.secret"
revocation_endpoint = "${baseUrl}/oauth2/revoke?key=of-the-maker"
`;
  hub = parts.use(await HubProcess.start({ emulator, toml: away, here: true }));
  await hub.addConnection('heating', 'Monitoring');
  await hub.addAppliance('thermostat', null, null, 'heating');
  await hub.addAppliance('dashboard', null, null, 'heating');
  await hub.addAppliance('wallbox', 'Monitoring');
});

describe('pair --all with a shared connection', () => {
  it('pair --all pairs a shared connection once, and its events name the connection and an own appliance', async () => {
    const running = startOn(hub, 'pair', '--all', '--json');
    await logInAtLink(emulator, running, 'heating');
    await logInAtLink(emulator, running, 'wallbox');
    const { status, stdout, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const paired = lines(stdout).filter(({ event }) => event === 'paired');
    expect(paired.map(({ appliance, connection }) => [appliance, connection])).toEqual([
      [undefined, 'heating'],
      ['wallbox', 'wallbox'],
    ]);
    expect(lines(stdout).at(-1)).toEqual({ event: 'done', connected: ['heating', 'wallbox'], left_out: [] });
    expect(emulator.grants()).toHaveLength(2);
    expect((await startOn(hub, 'pair', '--all').ended).stdout).toBe('Both connections are paired\n');
  });
});

describe('commands for a shared connection', () => {
  it('status has the connection beside its appliances, which show its login', async () => {
    const { connections, appliances } = await jsonOn<Record<string, Record<string, unknown>[]>>(hub, 'status');
    const heating = connections?.find(({ name }) => name === 'heating');
    expect(Object.keys(heating ?? {})).toEqual(
      expect.arrayContaining([
        ...['account', 'appliances', 'expires_in', 'last_refresh', 'login_ends', 'name', 'portal', 'problem'],
        ...['refresh_in', 'scope', 'state'],
      ]),
    );
    expect(heating).toMatchObject({ state: 'active', appliances: ['dashboard', 'thermostat'], login_ends: null });
    expect(appliances?.map(({ name, connection, state }) => [name, connection, state])).toEqual([
      ['dashboard', 'heating', 'active'],
      ['thermostat', 'heating', 'active'],
      ['wallbox', 'wallbox', 'active'],
    ]);
    expect((await startOn(hub, 'status').ended).stdout).toMatch(/^CONNECTION .* APPLIANCES$/m);
  });

  it('doctor --bundle lists the connections with their history, and the keys of the portal without a query', async () => {
    await hub.addConnection('cabin', null, 'away');
    const link = await hub.beginPairing('cabin');
    const file = join(hub.directory, 'diagnostics.tar.gz');
    expect(await startOn(hub, 'doctor', '--bundle', file).ended).toMatchObject({ stderr: '' });
    const files = await unpackDiagnostics(file);
    const [status = '', history = '', configuration = ''] = ['status.json', 'history.json', 'configuration.json'].map(
      (name) => files.get(name),
    );
    expect(JSON.parse(status).connections).toMatchObject([
      { name: 'cabin', authorize_url: 'left out' },
      { name: 'heating', appliances: ['dashboard', 'thermostat'] },
      { name: 'wallbox' },
    ]);
    expect(status).not.toContain(link.searchParams.get('state'));
    expect(JSON.parse(history)).toMatchObject({ heating: [{ kind: 'paired' }], cabin: [] });
    expect(Object.keys(JSON.parse(history))).not.toContain('thermostat');
    expect(JSON.parse(configuration).portals[1]).toMatchObject({ revocationEndpoint: emulator.baseUrl });
    expect(configuration).not.toContain('of-the-maker');
    await hub.ask((control) => control.request('removeConnection', { name: 'cabin' }));
  });

  it.each([
    [
      ['appliance', 'add', 'lamp', '--connection', 'heating', '--portal', 'away'],
      /lamp is for the portal away, .* at home/,
    ],
    [
      ['appliance', 'move', 'wallbox', '--connection', 'nothing'],
      /no appliance or connection nothing: "latchkey status"/,
    ],
    [['connection', 'remove', 'a/b'], /there is no appliance or connection a\/b/],
    [['token', 'thermostat'], /the appliance thermostat uses the connection heating: name that one instead/],
  ])('the command %j fails with one clear line', async (args, problem) => {
    const { status, stdout, stderr } = await startOn(hub, ...args).ended;
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(problem);
    expect(stderr).toMatch(/^latchkey: [\P{Cc}]{1,400}\n$/u);
  });

  it('a shared connection that needs a login ends status with 3, and shows what to do once', async () => {
    for (const { id } of emulator.grants()) emulator.revoke(id);
    await startOn(hub, 'refresh', 'heating').ended;
    const { status, stdout } = await startOn(hub, 'status').ended;
    expect(status).toBe(3);
    expect(stdout.match(/latchkey pair heating/g)).toHaveLength(1);
    expect(stdout).toContain('dashboard and thermostat are affected');
  });
});
