import { beforeEach, describe, expect, test } from 'vitest';
import { connectionsOnWire } from '../../control/status-samples.ts';
import { waitingForApproval } from '../../support/registration-samples.ts';
import { shareFakeAdministration } from '../command.ts';

const hub = shareFakeAdministration();
const { administration } = hub;

beforeEach(() => {
  administration.appliances.clear();
  administration.addedConnections.clear();
});

/** A paired connection that two appliances use, and an appliance with its own. */
function setUpShared(): void {
  administration.setConnection({ name: 'heating', state: 'active', scope: 'A B' });
  administration.set({ name: 'thermostat', connection: 'heating' });
  administration.set({ name: 'dashboard', connection: 'heating' });
  administration.set({ name: 'wallbox', state: 'active', scope: 'A' });
}

describe('latchkey connection', () => {
  test('connection add names the next commands, and with --json prints the documented members', async () => {
    expect((await hub.latchkey('connection', 'list')).stdout).toContain('latchkey connection add NAME');
    const { stdout } = await hub.latchkey('connection', 'add', 'heating');
    expect(stdout).toContain('latchkey pair heating\n');
    expect(stdout).toContain('latchkey appliance add APPLIANCE --connection heating\n');
    const added = await hub.latchkey('connection', 'add', 'heating', '--scope', 'A B', '--portal', 'home', '--json');
    expect(added).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(added.stdout)).toEqual({ name: 'heating', portal: 'home', scope: 'A B', state: 'unpaired' });
  });

  test('connection list --json prints what status says of each connection, and --names their names', async () => {
    setUpShared();
    const listed = await hub.latchkey('connection', 'list', '--json');
    expect(listed).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(listed.stdout)).toEqual(connectionsOnWire(administration.connections()));
    expect(JSON.parse((await hub.latchkey('status', '--json')).stdout).connections).toEqual(JSON.parse(listed.stdout));
    expect((await hub.latchkey('connection', 'list', '--names')).stdout).toBe('heating\nwallbox\n');
  });

  test('connection list shows a person each connection with its appliances', async () => {
    setUpShared();
    administration.setConnection({ name: 'spare', portal: 'garage' });
    expect(
      (await hub.latchkey('connection', 'list')).stdout,
    ).toBe(`CONNECTION  STATE     SCOPE  EXPIRES  REFRESH  REFRESHED  PORTAL  APPLIANCES
heating     active    A      –        –        –          home    dashboard
                      B                                           thermostat
spare       unpaired  –      –        –        –          garage  –
wallbox     active    A      –        –        –          home    wallbox

The login spare is not paired yet. Log in once to connect it: open https://192.168.1.7:8443/connections/spare or run "latchkey pair spare".
`);
  });

  test('connection remove refuses while appliances use it, and with --yes says which need a login', async () => {
    setUpShared();
    const refused = await hub.latchkey('connection', 'remove', 'heating');
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^latchkey: dashboard, thermostat use the connection heating: add --yes\n$/);
    expect(administration.addedConnections.has('heating')).toBe(true);
    administration.isPortalTold = false;
    const removed = await hub.latchkey('connection', 'remove', 'heating', '--yes');
    administration.isPortalTold = true;
    expect(removed).toMatchObject({ status: 0, stdout: '' });
    const [said, portal] = removed.stderr.split('\n');
    expect(said).toBe(
      'heating is removed. dashboard and thermostat each need a login of their own: latchkey pair --all',
    );
    expect(portal).toMatch(/^The portal was not told, so the login may go on there/);
    expect(administration.addedConnections.has('heating')).toBe(false);
  });

  test('connection remove asks a person about an unused connection', async () => {
    administration.setConnection({ name: 'spare' });
    for (const [answer, status] of [
      ['n', 1],
      ['y', 0],
    ] as const) {
      expect(
        (
          await hub
            .onTerminal('connection', 'remove', 'spare')
            .reply(/Remove spare and its grant\? \[y\/N\] /, `${answer}\r`)
        ).status,
      ).toBe(status);
      expect(administration.addedConnections.has('spare')).toBe(status === 1);
    }
  });
});

describe('appliances of a shared connection', () => {
  test('appliance add --connection keeps its JSON members, and names the next command for a person', async () => {
    administration.setConnection({ name: 'heating' });
    const json = await hub.latchkey('appliance', 'add', 'thermostat', '--connection', 'heating', '--json');
    expect(json).toMatchObject({ status: 0, stderr: '' });
    expect(Object.keys(JSON.parse(json.stdout))).toEqual([
      ...['name', 'title', 'client_id', 'client_secret', 'token_endpoint', 'ca_fingerprint'],
    ]);
    expect(administration.appliances.get('thermostat')?.connection).toBe('heating');
    administration.setConnection({ name: 'heating', state: 'active' });
    const paired = await hub.latchkey('appliance', 'add', 'lamp', '--connection', 'heating');
    expect(paired.stdout).toContain('lamp is registered. It uses the connection heating, and gets tokens at once.\n');
    for (const name of ['netatmo', 'tado']) administration.setConnection({ name });
    const several = ['netatmo', 'heating', 'tado', 'tado'].flatMap((name) => ['--connection', name]);
    const { stdout } = await hub.latchkey('appliance', 'add', 'hass', ...several);
    expect(stdout).toContain('hass is registered. Pair it next: latchkey pair netatmo and latchkey pair tado\n');
    const endpoints = ['netatmo', 'heating', 'tado'].map((name) => `/connections/${name}/oauth/token`);
    expect(stdout).toMatch(new RegExp(`token_endpoint${endpoints.map((path) => ` +https:.*${path}\n`).join('')} +ca_`));
    const commands = endpoints.map((path) => ` +'https:.*${path}' <<'EOF'\n`);
    expect(stdout).toMatch(new RegExp(commands.join('user = .*\nEOF\n +curl .*\n')));
  });

  test('appliance move prints the status of the appliance, or the connection that no appliance uses any more', async () => {
    setUpShared();
    administration.setConnection({ name: 'spare', state: 'active', scope: 'A B' });
    const json = await hub.latchkey('appliance', 'move', 'dashboard', '--connection', 'spare', '--json');
    expect(json).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(json.stdout)).toMatchObject({ name: 'dashboard', state: 'active', connection: 'spare' });
    const moved = await hub.latchkey('appliance', 'move', 'dashboard', '--connection', 'heating');
    expect(moved).toMatchObject({ status: 0, stdout: 'dashboard uses the connection heating now.\n' });
    expect(moved.stderr).toContain('latchkey connection remove spare');
  });

  test('appliance approve --portal passes the portal to the hub, and says at which one the login is', async () => {
    administration.set({ name: 'lamp', waitingForApproval: waitingForApproval() });
    const approved = await hub.latchkey('appliance', 'approve', 'lamp', '--portal', 'second');
    expect(approved.stdout).toMatch(/is approved\. Its login is at the portal second\. .*latchkey pair lamp\n$/);
  });

  test('appliance approve --connection and invite --connection pass the connection to the hub', async () => {
    administration.setConnection({ name: 'heating' });
    administration.set({ name: 'lamp', waitingForApproval: waitingForApproval() });
    const approved = await hub.latchkey('appliance', 'approve', 'lamp', '--connection', 'heating');
    expect(approved.stdout).toMatch(/is approved\..* latchkey pair heating\n$/);
    expect(administration.appliances.get('lamp')?.connection).toBe('heating');
    const invited = await hub.latchkey('invite', '--connection', 'heating');
    expect(invited.stdout).toMatch(/^ {2}connection {13}heating$/m);
    expect(administration.invites.at(-1)).toMatchObject({ connection: 'heating', scope: null, portal: null });
  });

  test('appliance remove and unpair ask a person with what happens to a shared connection', async () => {
    setUpShared();
    for (const [args, question] of [
      [['appliance', 'remove', 'dashboard'], /Remove dashboard and its secret\? The connection heating stays\. \[y/],
      [['unpair', 'heating'], /The appliances that use it get no tokens until/],
      [['unpair', 'wallbox'], /The appliance gets no tokens until/],
    ] as const) {
      expect((await hub.onTerminal(...args).reply(question, 'n\r')).status).toBe(1);
    }
  });
});

describe('the status of shared connections', () => {
  test('status shows shared connections in their own section, and each appliance with its connection', async () => {
    setUpShared();
    const problem = { code: 'refused', message: 'The portal refused it', since: '2026-01-01T00:00:00Z' } as const;
    administration.setConnection({ name: 'heating', state: 'needs_pairing', scope: 'A', problem, wantedScope: 'B' });
    administration.setConnection({ name: 'spare', state: 'pairing', authorizeUrl: 'https://portal.example/a' });
    const { status, stdout } = await hub.latchkey('status');
    expect(status).toBe(3);
    const [, appliances, connections, remarks] = stdout.trimEnd().split('\n\n');
    expect(appliances).toBe(`APPLIANCE   STATE          SCOPE  EXPIRES  REFRESH  REFRESHED  CONNECTION
thermostat  needs_pairing  A      –        –        –          heating
dashboard   needs_pairing  A      –        –        –          heating
wallbox     active         A      –        –        –          wallbox`);
    expect(connections).toBe(`CONNECTION  STATE          SCOPE  EXPIRES  REFRESH  REFRESHED  APPLIANCES
heating     needs_pairing  A      –        –        –          dashboard
                                                               thermostat
spare       pairing        –      –        –        –          –`);
    expect(remarks?.split('\n')).toEqual([
      expect.stringMatching(/^The login heating is no longer connected: .*; dashboard and thermostat are affected\./),
      'heating: its configured scope was changed to B; until somebody logs in again, it keeps A: latchkey pair heating',
      'spare: log in at https://portal.example/a',
    ]);
  });

  test('status says when a login ends where that is known', async () => {
    setUpShared();
    expect((await hub.latchkey('status')).stdout).not.toContain('login ends');
    administration.setConnection({ name: 'heating', loginEnds: '2031-05-12T06:00:00Z' });
    const { stdout } = await hub.latchkey('status');
    expect(stdout).toMatch(/^heating: login ends on 2031-05-12T06:00:00Z/m);
    const list = (await hub.latchkey('connection', 'list')).stdout;
    expect(list.match(/login ends on/g)).toHaveLength(1);
  });
});
