import { readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Agent, request } from 'undici';
import { describe, expect, test } from 'vitest';
import { HubClient } from '../../lan/hub-client.ts';
import {
  countCodeSends,
  countRefreshSends,
  fetchPage,
  logIn,
  pairFleet,
  refreshUntilActive,
  startRefresh,
} from '../../reliability/fleet.ts';
import { SmallDisk } from '../../reliability/small-disk.ts';
import { eventually, HubProcess, stateParameterOf } from '../../support/hub-process.ts';
import { systemdSkipReason } from '../../support/notify-socket.ts';
import { startPausablePortal } from '../../support/pausable-portal.ts';
import { startPortal } from '../../support/portal.ts';
import { MAIN } from '../../support/program.ts';
import {
  type SupervisedDaemon,
  type SupervisedOptions,
  supervise,
  superviseUntilReady,
} from '../../systemd/supervised.ts';

/** Changes the text of the configuration. */
async function change(hub: HubProcess, from: string | RegExp, to: string): Promise<void> {
  const file = join(hub.directory, 'latchkey.toml');
  const text = await readFile(file, 'utf8');
  const changed = text.replace(from, to);
  expect(changed).not.toBe(text);
  await writeFile(file, changed);
}

function count(daemon: SupervisedDaemon, eventName: string): number {
  return daemon.events().filter(({ event }) => event === eventName).length;
}

function started(hub: HubProcess, options: SupervisedOptions = {}): Promise<SupervisedDaemon> {
  return superviseUntilReady(hub, '', { slowStore: true, ...options });
}

async function end(daemon: SupervisedDaemon): Promise<void> {
  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toEqual({ status: 0, signal: null });
}

describe.concurrent('a reload of the configuration', () => {
  test('a reload applies a changed name, port and portal, and keeps registration open and the uptime', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    await pairFleet(hub, emulator, ['wallbox']);
    await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
    {
      await using client = await HubClient.of(hub);
      await client.register({});
    }
    const before = await hub.status();
    await change(hub, 'name = "Test hub"', 'name = "Attic hub"');
    await change(hub, `http_port = ${hub.httpPort}`, 'http_port = 0');
    await change(hub, '[portals.home]', '[portals.cloud]');
    // The uptime is in whole seconds.
    await eventually(async () => (await hub.status()).hub.uptime > before.hub.uptime);
    expect(await hub.cli('reload')).toMatchObject({ status: 0, stderr: '' });
    const after = await hub.status();
    expect(after.hub).toMatchObject({ id: before.hub.id, name: 'Attic hub', https_port: hub.httpsPort });
    expect(after.hub.ca_fingerprint).toBe(before.hub.ca_fingerprint);
    expect(after.hub.http_port).not.toBe(hub.httpPort);
    expect(after.hub.uptime).toBeGreaterThan(before.hub.uptime);
    expect(after.hub.registration_asked).toBe(1);
    expect(after.hub.registration_open_for).toBeGreaterThan(0);
    expect(after.hub.registration_open_for).toBeLessThan(600);
    expect(after.appliances).toContainEqual(
      expect.objectContaining({ name: 'wallbox', state: 'active', portal: 'cloud' }),
    );
    expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
      state: 'active',
      problem: null,
    });
  });

  test('a reload rejects a wrong configuration in one line, and the old one stays in force', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    await using other = createServer().listen(0, '127.0.0.1');
    const good = await readFile(join(hub.directory, 'latchkey.toml'), 'utf8');
    const cases: [from: string | RegExp, to: string, says: string][] = [
      [/https_port = \d+/, 'https_port = "x"', 'lan.https_port'],
      ['state_dir = "', 'state_dir = "/tmp', "hub.state_dir can't change while the hub runs: restart it"],
      ['[hub]', '[hub]\ncontrol_socket = "x.sock"', "hub.control_socket can't change while the hub runs: restart it"],
      ['[hub]', '[hub', 'line 1'],
    ];
    for (const [from, to, message] of cases) {
      await change(hub, from, to);
      await expect(hub.ask((control) => control.request('reload'))).rejects.toThrow(message);
      await writeFile(join(hub.directory, 'latchkey.toml'), good);
    }
    await change(hub, /https_port = \d+/, 'https_port = "x"');
    expect(await hub.cli('reload')).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^latchkey: .*latchkey\.toml: lan\.https_port: must be .* \(found "x"\)\n$/),
    });
    expect(hub.events('hub_started')).toHaveLength(1);

    // A hub that can't start with the new one starts again with the old one.
    await writeFile(join(hub.directory, 'latchkey.toml'), good);
    await change(hub, /https_port = \d+/, `https_port = ${(other.address() as AddressInfo).port}`);
    expect(await hub.cli('reload')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^latchkey: the hub could not start .* runs with the previous one: lan\.https_port/,
      ),
    });
    expect((await hub.status()).hub.https_port).toBe(hub.httpsPort);
  });

  test('a reload waits for a refresh and a code exchange that were sent, and the hub issues tokens but starts no refresh meanwhile', async () => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    const [, other = expect.fail()] = await pairFleet(hub, emulator, ['wallbox', 'fan']);
    await hub.addAppliance('heater', 'Monitoring');
    const state = stateParameterOf(await hub.beginPairing('heater'));
    const { location } = await emulator.login({ state, user: 'demo' });
    await hub.addAppliance('lamp', 'Monitoring');
    const pair = hub.cli('pair', 'lamp', '--json');
    const { authorize_url } = await hub.until('lamp', (status) => status.authorize_url !== undefined);
    portal.hold();
    void fetchPage(location).catch(() => undefined);
    startRefresh(hub, 'wallbox');
    await portal.kept(2);
    const reload = hub.cli('reload');
    await eventually(async () => count(daemon, 'configuration_reloading') === 1);
    expect((await hub.requestToken(other)).status).toBe(200);
    await expect(hub.ask((control) => control.request('refresh', { name: 'fan' }))).rejects.toThrow(
      'try again in a moment',
    );
    await expect(hub.ask((control) => control.request('reload'))).rejects.toThrow('try again');
    await sleep(1000);
    expect(count(daemon, 'hub_stopped')).toBe(0);
    portal.release();
    expect((await reload).status).toBe(0);
    for (const name of ['wallbox', 'heater']) {
      expect(await hub.appliance(name)).toMatchObject({ state: 'active', problem: null });
    }
    await refreshUntilActive(hub, 'wallbox');
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1]);
    expect(countCodeSends(emulator)).toEqual([1, 1, 1]);

    // An open pairing has outlived the reload.
    await logIn(emulator, authorize_url);
    const { status, stdout, stderr } = await pair;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const reports = stdout.trim().split('\n');
    expect(reports.map((line) => JSON.parse(line))).toMatchObject([
      { event: 'waiting', authorize_url },
      { event: 'paired' },
    ]);
    await end(daemon);
  });

  test('a reload waits until what is only in memory is stored, also if the disk fills up meanwhile', async (ctx) => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using disk = SmallDisk.mount(hub, 'tmpfs') ?? ctx.skip('needs root and a kernel that lets it mount');
    await using daemon = await started(hub);
    const [credentials = expect.fail()] = await pairFleet(hub, emulator, ['wallbox']);
    // A snapshot of the store that ends frees space again.
    await eventually(async () => {
      disk.fill();
      const { problem } = await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
      return problem?.code === 'store_unwritable';
    });
    await expect(hub.ask((control) => control.request('reload'))).rejects.toThrow("the hub can't write its store");
    disk.makeRoom();
    await refreshUntilActive(hub, 'wallbox');
    expect((await hub.cli('reload')).status).toBe(0);

    // The portal responds when the disk is full.
    portal.hold();
    startRefresh(hub, 'wallbox');
    await portal.kept(1);
    const reload = hub.cli('reload');
    await eventually(async () => count(daemon, 'configuration_reloading') === 2);
    // More responses than the ballast has room for.
    await rm(join(hub.directory, 'state/ballast'), { force: true });
    disk.fill();
    portal.release();
    await hub.until('wallbox', ({ problem }) => problem?.code === 'store_unwritable');
    const { access_token: served } = (await hub.requestToken(credentials)).body;
    await sleep(3000);
    expect(count(daemon, 'hub_stopped')).toBe(1);
    disk.makeRoom();
    expect((await reload).status).toBe(0);
    expect((await hub.requestToken(credentials)).body['access_token']).toBe(served);
    await refreshUntilActive(hub, 'wallbox');
    expect(countRefreshSends(emulator).filter(({ sends }) => sends !== 1)).toEqual([]);
    await end(daemon);
  });

  test('the daemon handles SIGHUP during the start, another reload and the stop', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    // In this order on any machine: after the process ended, nothing would receive the second signal.
    const onSignal = "process.kill(process.pid, 'SIGTERM'); process.kill(process.pid, 'SIGHUP')";
    await using daemon = await started(hub, { onSignal });
    await change(hub, 'name = "Test hub"', 'name = 7');
    daemon.child.kill('SIGHUP');
    await eventually(async () => count(daemon, 'configuration_rejected') === 1);
    await change(hub, 'name = 7', 'name = "Attic hub"');
    for (let i = 0; i < 5; i++) daemon.child.kill('SIGHUP');
    await eventually(
      async () => (await hub.ask((control) => control.request('status')).catch(() => null))?.hub.name === 'Attic hub',
    );
    await eventually(async () => count(daemon, 'hub_started') >= 2);
    await sleep(1500);
    expect(count(daemon, 'hub_started')).toBeLessThanOrEqual(3);
    daemon.child.kill('SIGUSR2');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });

    await using early = supervise(hub, '');
    await eventually(async () => early.child.exitCode === null && (await isCatching(early)));
    early.child.kill('SIGHUP');
    await eventually(async () => count(early, 'hub_started') >= 1);
    await end(early);
  });

  test('the hub still remembers used assertions after a reload, and accepts new ones at once', async () => {
    await using emulator = await startPortal();
    const toml = '[appliances.boiler]\njwks_file = "boiler.jwks"';
    await using hub = await HubProcess.prepare({ emulator, toml, here: true });
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    await writeFile(join(hub.directory, 'boiler.jwks'), JSON.stringify({ keys: [await exportJWK(publicKey)] }));
    await hub.launch();
    const agent = new Agent({ connect: { ca: (await hub.authority()).certificate } });
    const endpoint = `https://127.0.0.1:${hub.httpsPort}/oauth/token`;
    const assertion = () =>
      new SignJWT({ iss: 'boiler', sub: 'boiler', aud: endpoint, jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuedAt()
        .setExpirationTime('50s')
        .sign(privateKey);
    const send = async (client_assertion: string) => {
      const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
      const { statusCode, body } = await request(endpoint, {
        method: 'POST',
        dispatcher: agent,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_assertion_type,
          client_assertion,
        }).toString(),
      });
      return { statusCode, body: await body.json() };
    };
    // It is registered, and not paired.
    const known = { statusCode: 400, body: { error: 'invalid_grant' } };
    const used = await assertion();
    expect(await send(used)).toMatchObject(known);
    await hub.reload();
    const again = { error: 'invalid_client', error_description: expect.stringContaining('was used before') };
    expect(await send(used)).toMatchObject({ statusCode: 401, body: again });
    expect(await send(await assertion())).toMatchObject(known);
    await agent.destroy();
  });

  test('a reload leaves nothing of the old hub in memory', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const count = `process.getBuiltinModule('node:v8').queryObjects(require('better-sqlite3'))`;
    const onSignal = `const require=process.getBuiltinModule('node:module').createRequire('${MAIN}');process.stderr.write('<6>{"event":"open","stores":'+${count}+'}\\n')`;
    await using daemon = await started(hub, { onSignal });
    for (let reloads = 0; reloads < 6; reloads++) await hub.reload();
    daemon.child.kill('SIGUSR2');
    const stores = await eventually(async () => daemon.events().find(({ event }) => event === 'open')?.['stores']);
    expect(stores).toBeLessThan(4);
    await end(daemon);
  });
});

test.skipIf(systemdSkipReason)(
  'SIGHUP also reloads a hub on a terminal, and ends it when the terminal is gone',
  async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const terminal = ['/usr/bin/python3', join(import.meta.dirname, '../../support/terminal.py')];
    await using daemon = await started(hub, { within: terminal });
    daemon.child.kill('SIGHUP');
    await eventually(async () => count(daemon, 'hub_started') === 2);
    daemon.child.kill('SIGUSR1');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect([count(daemon, 'hub_started'), count(daemon, 'hub_stopping')]).toEqual([2, 1]);
  },
);

test('a hub in test mode has nothing to reload', async () => {
  await using hub = await HubProcess.prepare();
  await using daemon = await started(hub, { args: ['--test-mode'] });
  daemon.child.kill('SIGHUP');
  await eventually(async () => count(daemon, 'reload_unavailable') === 1);
  await end(daemon);
});

/** Whether the process has installed its handler of SIGHUP: without it the signal would end the process. */
async function isCatching({ child }: SupervisedDaemon): Promise<boolean> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  const [, caught = '0'] = /^SigCgt:\s+([0-9a-f]+)$/m.exec(status) ?? [];
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}
