import { readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Agent, request } from 'undici';
import { describe, expect, test } from 'vitest';
import { HubClient } from '../../lan/hub-client.ts';
import { countCodeSends, countRefreshSends, logIn, pairFleet, startRefresh } from '../../reliability/fleet.ts';
import { SmallDisk } from '../../reliability/small-disk.ts';
import { eventually, HubProcess, stateParameterOf } from '../../support/hub-process.ts';
import { NotifySocket, systemdSkipReason } from '../../support/notify-socket.ts';
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

function started(hub: HubProcess, notify = '', options: SupervisedOptions = {}): Promise<SupervisedDaemon> {
  return superviseUntilReady(hub, notify, { slowStore: true, ...options });
}

async function end(daemon: SupervisedDaemon): Promise<void> {
  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toEqual({ status: 0, signal: null });
}

describe.concurrent('a reload of the configuration', () => {
  test('a reload applies a changed name, port and portal', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    await pairFleet(hub, emulator, ['wallbox']);
    const before = await hub.status();
    await change(hub, 'name = "Test hub"', 'name = "Attic hub"');
    await change(hub, `http_port = ${hub.httpPort}`, 'http_port = 0');
    await change(hub, '[portals.home]', '[portals.cloud]');
    expect(await hub.cli('reload')).toMatchObject({ status: 0, stderr: '' });
    const after = await hub.status();
    expect(after.hub).toMatchObject({ id: before.hub.id, name: 'Attic hub', https_port: hub.httpsPort });
    expect(after.hub.ca_fingerprint).toBe(before.hub.ca_fingerprint);
    expect(after.hub.http_port).not.toBe(hub.httpPort);
    expect(after.appliances).toMatchObject([{ name: 'wallbox', state: 'active', portal: 'cloud' }]);
    expect(await hub.ask((control) => control.refresh('wallbox'))).toMatchObject({ state: 'active', problem: null });
    await end(daemon);
  });

  test.skipIf(systemdSkipReason)('a reload tells systemd when it begins and when it has ended', async () => {
    await using socket = await NotifySocket.listen();
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub, socket.path);
    expect((await hub.cli('reload')).status).toBe(0);
    await eventually(async () => socket.valuesOf('READY').length === 2);
    expect(socket.messages.map(([first]) => first)).toEqual(['READY=1', 'RELOADING=1', 'READY=1']);
    await change(hub, 'name = ', 'nome = ');
    expect((await hub.cli('reload')).status).toBe(1);
    await sleep(500);
    expect(socket.valuesOf('RELOADING')).toHaveLength(1);
    await end(daemon);
  });

  test('a reload rejects a wrong configuration in one line, and the old one stays in force', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    const good = await readFile(join(hub.directory, 'latchkey.toml'), 'utf8');
    const cases: [from: string | RegExp, to: string, says: string][] = [
      [/https_port = \d+/, 'https_port = "x"', 'lan.https_port'],
      ['state_dir = "', 'state_dir = "/tmp', "hub.state_dir can't change while the hub runs: restart it"],
      ['[hub]', '[hub]\ncontrol_socket = "x.sock"', "hub.control_socket can't change while the hub runs: restart it"],
      [/\[portals.home\].*/s, '', 'portals: no portal is configured'],
      ['[hub]', '[hub', 'line 1'],
    ];
    for (const [from, to, message] of cases) {
      await change(hub, from, to);
      const refused = await hub.ask((control) => control.reload()).catch((error: unknown) => String(error));
      expect(refused).toContain(message);
      await writeFile(join(hub.directory, 'latchkey.toml'), good);
    }
    await change(hub, /https_port = \d+/, 'https_port = "x"');
    expect(await hub.cli('reload')).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: expect.stringMatching(/^latchkey: .*latchkey\.toml: lan\.https_port: must be .* \(found "x"\)\n$/),
    });
    daemon.child.kill('SIGHUP');
    await eventually(async () => count(daemon, 'configuration_rejected') === 1);
    await writeFile(join(hub.directory, 'latchkey.toml'), good);
    expect([count(daemon, 'hub_started'), (await hub.status()).hub.https_port]).toEqual([1, hub.httpsPort]);
    await end(daemon);
  });

  test('a reload returns to the old configuration if the hub can not start with the new one, and says so', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using other = createServer().listen(0, '127.0.0.1');
    await using daemon = await started(hub);
    await change(hub, /https_port = \d+/, `https_port = ${(other.address() as AddressInfo).port}`);
    expect(await hub.cli('reload')).toMatchObject({
      ...{ status: 1, stdout: '' },
      stderr: expect.stringMatching(
        /^latchkey: the hub could not start .* runs with the previous one: lan\.https_port/,
      ),
    });
    expect((await hub.status()).hub).toMatchObject({ https_port: hub.httpsPort });
    await end(daemon);
  });

  test('a reload waits for a refresh that was sent, and the hub issues tokens but starts no refresh meanwhile', async () => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    const [credentials, other] = await pairFleet(hub, emulator, ['wallbox', 'fan']);
    if (credentials === undefined || other === undefined) throw new Error('nothing is paired');
    portal.hold();
    startRefresh(hub, 'wallbox');
    await eventually(async () => countRefreshSends(emulator).length === 1);
    const reload = hub.cli('reload');
    await eventually(async () => count(daemon, 'configuration_reloading') === 1);
    expect((await hub.requestToken(other)).status).toBe(200);
    const refresh = await hub.ask((control) => control.refresh('fan')).catch((error: unknown) => String(error));
    expect(refresh).toContain('try again in a moment');
    const second = await hub.ask((control) => control.reload()).catch((error: unknown) => String(error));
    expect(second).toContain('try again');
    expect(count(daemon, 'hub_stopped')).toBe(0);
    portal.release();
    expect((await reload).status).toBe(0);
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });
    expect(await hub.ask((control) => control.refresh('wallbox'))).toMatchObject({ state: 'active', problem: null });
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1]);
    await end(daemon);
  });

  test('a reload does not end an open pairing', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    await hub.addAppliance('wallbox', 'Monitoring');
    const pair = hub.cli('pair', 'wallbox', '--json');
    const { authorize_url } = await hub.until('wallbox', (status) => status.authorize_url !== undefined);
    expect((await hub.cli('reload')).status).toBe(0);
    await logIn(emulator, authorize_url);
    const { status, stdout, stderr } = await pair;
    expect({
      status,
      stderr,
      events: stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    }).toMatchObject({
      ...{ status: 0, stderr: '' },
      events: [{ event: 'waiting', authorize_url }, { event: 'paired' }],
    });
    await end(daemon);
  });

  test('a reload waits for a code exchange that was sent', async () => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    await hub.addAppliance('wallbox', 'Monitoring');
    const { location } = await emulator.login({
      state: stateParameterOf(await hub.beginPairing('wallbox')),
      user: 'demo',
    });
    portal.hold();
    void fetch(location).catch(() => undefined);
    await eventually(async () => countCodeSends(emulator).length === 1);
    const reload = hub.cli('reload');
    await eventually(async () => count(daemon, 'configuration_reloading') === 1);
    await sleep(1000);
    expect(count(daemon, 'hub_stopped')).toBe(0);
    portal.release();
    expect((await reload).status).toBe(0);
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });
    expect(countCodeSends(emulator)).toEqual([1]);
    await end(daemon);
  });

  test('the daemon handles SIGHUP during the start, another reload and the stop', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    // In this order on any machine: after the process ended, nothing would receive the second signal.
    const onSignal = "process.kill(process.pid, 'SIGTERM'); process.kill(process.pid, 'SIGHUP')";
    await using daemon = await started(hub, '', { onSignal });
    await change(hub, 'name = "Test hub"', 'name = "Attic hub"');
    for (let i = 0; i < 5; i++) daemon.child.kill('SIGHUP');
    await eventually(async () => (await hub.ask(({ status }) => status()).catch(() => null))?.hub.name === 'Attic hub');
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

  test('a reload is refused while something would be lost that is only in memory', async (ctx) => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using disk = SmallDisk.mount(hub, 'tmpfs') ?? ctx.skip('needs root and a kernel that lets it mount');
    await using daemon = await started(hub);
    await pairFleet(hub, emulator, ['wallbox']);
    // A snapshot of the store that ends frees space again.
    await eventually(async () => {
      disk.fill();
      const { problem } = await hub.ask((control) => control.refresh('wallbox'));
      return problem?.code === 'store_unwritable';
    });
    const refused = await hub.ask((control) => control.reload()).catch((error: unknown) => String(error));
    expect(refused).toContain("the hub can't write its store");
    disk.makeRoom();
    expect(await hub.ask((control) => control.refresh('wallbox'))).toMatchObject({ problem: null });
    expect((await hub.cli('reload')).status).toBe(0);
    await end(daemon);
  });

  test('a reload waits until the response to a refresh is stored, also if the disk fills up meanwhile', async (ctx) => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using disk = SmallDisk.mount(hub, 'tmpfs') ?? ctx.skip('needs root and a kernel that lets it mount');
    await using daemon = await started(hub);
    const [credentials] = await pairFleet(hub, emulator, ['wallbox']);
    if (credentials === undefined) throw new Error('nothing is paired');
    // The portal responds when the disk is full.
    portal.hold();
    startRefresh(hub, 'wallbox');
    await eventually(async () => countRefreshSends(emulator).length === 1);
    const reload = hub.cli('reload');
    await eventually(async () => count(daemon, 'configuration_reloading') === 1);
    // More responses than the ballast has room for.
    await rm(join(hub.directory, 'state/ballast'));
    disk.fill();
    portal.release();
    await hub.until('wallbox', ({ problem }) => problem?.code === 'store_unwritable');
    const { access_token: served } = (await hub.requestToken(credentials)).body;
    await sleep(3000);
    expect(count(daemon, 'hub_stopped')).toBe(0);
    disk.makeRoom();
    expect((await reload).status).toBe(0);
    expect((await hub.requestToken(credentials)).body['access_token']).toBe(served);
    expect(await hub.ask((control) => control.refresh('wallbox'))).toMatchObject({ state: 'active', problem: null });
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1]);
    await end(daemon);
  });

  test('the hub still remembers used assertions after a reload, and accepts new ones at once', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator, toml: '[appliances.boiler]\njwks_file = "boiler.jwks"' });
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    await writeFile(join(hub.directory, 'boiler.jwks'), JSON.stringify({ keys: [await exportJWK(publicKey)] }));
    await using daemon = await started(hub);
    const agent = new Agent({ connect: { ca: (await hub.cli('ca')).stdout } });
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
          ...{ grant_type: 'client_credentials', client_assertion_type, client_assertion },
        }).toString(),
      });
      return { statusCode, body: await body.json() };
    };
    // It is registered, and not paired.
    const known = { statusCode: 400, body: { error: 'invalid_grant' } };
    const used = await assertion();
    expect(await send(used)).toMatchObject(known);
    expect((await hub.cli('reload')).status).toBe(0);
    const again = { error: 'invalid_client', error_description: expect.stringContaining('was used before') };
    expect(await send(used)).toMatchObject({ statusCode: 401, body: again });
    expect(await send(await assertion())).toMatchObject(known);
    await agent.destroy();
    await end(daemon);
  });

  test('a reload leaves nothing of the old hub in memory', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const count = `process.getBuiltinModule('node:v8').queryObjects(require('better-sqlite3'))`;
    const onSignal = `const require=process.getBuiltinModule('node:module').createRequire('${MAIN}');process.stderr.write('<6>{"event":"open","stores":'+${count}+'}\\n')`;
    await using daemon = await started(hub, '', { onSignal });
    for (let reloads = 0; reloads < 6; reloads++) {
      const id = await hub.ask((control) => control.reload());
      await eventually(async () => {
        const outcome = await hub.ask((control) => control.reloadOutcome(id)).catch(() => null);
        return outcome?.state === 'done';
      });
    }
    daemon.child.kill('SIGUSR2');
    const stores = await eventually(async () => daemon.events().find(({ event }) => event === 'open')?.['stores']);
    expect(stores).toBeLessThan(4);
    await end(daemon);
  });

  test('a reload keeps registration open and the uptime of the daemon', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await started(hub);
    await hub.ask((control) => control.openRegistration(600));
    {
      await using client = await HubClient.of(hub);
      await client.register({});
    }
    await sleep(2000);
    expect((await hub.cli('reload')).status).toBe(0);
    const { registration_open_for = 0, registration_asked, uptime } = (await hub.status()).hub;
    expect(registration_asked).toBe(1);
    expect(registration_open_for).toBeGreaterThan(400);
    expect(registration_open_for).toBeLessThan(600);
    expect(uptime).toBeGreaterThanOrEqual(2);
    await end(daemon);
  });
});

test.skipIf(systemdSkipReason)(
  'SIGHUP also reloads a hub on a terminal, and ends it when the terminal is gone',
  async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const terminal = ['/usr/bin/python3', join(import.meta.dirname, '../../support/terminal.py')];
    await using daemon = await started(hub, '', { within: terminal });
    daemon.child.kill('SIGHUP');
    await eventually(async () => count(daemon, 'hub_started') === 2);
    daemon.child.kill('SIGUSR1');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect([count(daemon, 'hub_started'), count(daemon, 'hub_stopping')]).toEqual([2, 1]);
  },
);

test('a hub in test mode has nothing to reload', async () => {
  await using hub = await HubProcess.prepare();
  await using daemon = await started(hub, '', { args: ['--test-mode'] });
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
