import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PortalsResponse } from '../../src/control/messages.ts';
import type { RouteInput } from '../../src/control/routes.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { unpackDiagnostics } from '../cli/diagnostics-archive.ts';
import { eventually, HubProcess, type HubProcessOptions } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  rememberSecrets([emulator.clientSecret]);
});
beforeEach(() => emulator.reset());
afterEach(() => hub[Symbol.asyncDispose]());

/** Starts a hub without a portal. */
async function start(options: HubProcessOptions = {}): Promise<void> {
  hub = await HubProcess.start({ here: true, ...options });
}

/** The emulator as a helper portal. */
const home = (more: Partial<RouteInput<'addPortal'>> = {}): RouteInput<'addPortal'> => ({
  name: 'home',
  keys: { base_url: emulator.baseUrl, frontend_url: emulator.frontendUrl, client_id: emulator.clientId },
  client_secret: emulator.clientSecret,
  ...more,
});

const add = (portal: RouteInput<'addPortal'>) => hub.ask((control) => control.request('addPortal', portal));
const remove = (name: string) => hub.ask((control) => control.request('removePortal', { name }));
const names = async () => (await hub.ask((control) => control.request('portals'))).portals.map(({ name }) => name);

/** Waits until the hub that a reload has started is up. */
const settled = ({ reload: id }: { readonly reload: string }) =>
  eventually(async () => {
    const outcome = await hub.ask((control) => control.request('reloadOutcome', { id })).catch(() => null);
    return outcome?.state === 'done';
  });

describe('a hub without a portal', () => {
  test('a fresh hub starts without a portal, and says what to do if an appliance is to be added', async () => {
    await start();
    expect(await hub.json<PortalsResponse>('portals')).toEqual({ portals: [] });
    const [condition, ...others] = (await hub.status()).conditions;
    expect([condition?.code, condition?.severity, others]).toEqual(['no_portal', 'warning', []]);
    const shown =
      /No portal is chosen yet\. .*Choose one on the hub's page, or with ".*latchkey portal add"\.\n\nNo appliances yet\.\n$/;
    expect((await hub.cli('status')).stdout).toMatch(shown);
    const said = 'no portal is chosen yet: choose one on the hub\'s page, or with "latchkey portal add"';
    for (const request of [
      () => hub.addAppliance('wallbox'),
      () => hub.addConnection('cloud'),
      () => hub.ask((control) => control.request('openRegistration', { open_for: 60 })),
    ])
      await expect(request()).rejects.toMatchObject({ code: 'portal_unknown', message: said });
  });

  test('what the configuration declares waits for the first portal', async () => {
    hub = await HubProcess.prepare({ here: true, toml: '[appliances.wallbox]\nsecret_file = "wallbox.secret"' });
    await writeFile(join(hub.directory, 'wallbox.secret'), 'the-secret-of-a-wallbox', { mode: 0o600 });
    await hub.launch();
    expect((await hub.status()).appliances).toEqual([]);
    await settled(await add(home()));
    expect(await hub.appliance('wallbox')).toMatchObject({ portal: 'home', state: 'unpaired' });
  });
});

describe('adding a portal', () => {
  test('an added portal is the default one, connects appliances, and is there after a restart', async () => {
    await start();
    const added = await add(home());
    expect(added.checks.find(({ name }) => name === 'client')).toMatchObject({ result: 'ok' });
    await settled(added);
    const { portals } = await hub.json<PortalsResponse>('portals');
    expect(portals).toMatchObject([{ name: 'home', type: 'helper', login: 'redirect', added: true }]);
    await hub.addAppliance('wallbox', 'Monitoring');
    await hub.pair('wallbox', emulator);
    expect(hub.events('portal_added')).toEqual([expect.objectContaining({ portal: 'home' })]);
    await hub.kill('SIGTERM');
    await hub.launch();
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', portal: 'home' });
  });

  test('nothing is stored if the portal does not accept the client, or a key is not valid', async () => {
    await start();
    await expect(add(home({ client_secret: 'another-secret' }))).rejects.toMatchObject({
      code: 'client_rejected',
      message: expect.stringMatching(
        /^home was not added: the portal does not accept the hub .* the client ID of home/,
      ),
    });
    await expect(add(home({ keys: { ...home().keys, client_id: 'no-uuid' } }))).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringMatching(/^home was not added: client_id: must be a UUID/),
    });
    await expect(add(home({ name: 'No Name' }))).rejects.toMatchObject({ code: 'name_invalid' });
    await hub.kill('SIGTERM');
    await hub.launch();
    expect(await names()).toEqual([]);
  });

  test('a portal that can not be reached is added, and the check says that it was not reached', async () => {
    await start();
    const keys = { issuer: 'http://127.0.0.1:9', client_id: 'a' };
    const added = await add({ name: 'gone', keys, client_secret: null });
    expect(added.checks).toContainEqual(expect.objectContaining({ name: 'discovery', result: 'fail' }));
    await settled(added);
    expect(await names()).toEqual(['gone']);
  });

  test('the configuration wins: what it declares can be neither added nor removed, and hides an added portal of its name', async () => {
    await start();
    await settled(await add(home()));
    const file = join(hub.directory, 'latchkey.toml');
    const before = await readFile(file, 'utf8');
    await writeFile(file, `${before}[portals.home]\npreset = "tado"\nissuer = "http://127.0.0.1:9"\n`);
    await hub.reload();
    const { portals } = await hub.json<PortalsResponse>('portals');
    expect(portals).toMatchObject([{ name: 'home', type: 'oauth2', preset: 'tado' }]);
    expect(portals[0]).not.toHaveProperty('added');
    for (const request of [() => add(home({ replace: true })), () => remove('home')])
      await expect(request()).rejects.toMatchObject({ code: 'portal_declared' });
    expect(hub.events('added_portal_hidden')).toHaveLength(1);
    await writeFile(file, before);
    await hub.reload();
    expect((await hub.json<PortalsResponse>('portals')).portals).toMatchObject([{ name: 'home', added: true }]);
  });

  test('of two requests at once one is refused or both are done, and the same request twice adds one portal', async () => {
    await start();
    const twice = await Promise.allSettled([add(home()), add(home({ name: 'second' }))]);
    for (const one of twice) {
      if (one.status === 'fulfilled') await settled(one.value);
      else expect(one.reason).toMatchObject({ code: expect.stringMatching(/^(not_allowed|hub_stopping)$/) });
    }
    for (const portal of [home(), home({ name: 'second' })]) await settled(await add(portal));
    expect((await names()).sort()).toEqual(['home', 'second']);
  });

  test('other data for a portal that exists is refused, unless it is to replace that portal', async () => {
    await start();
    await settled(await add(home()));
    const wrong = home({ client_secret: 'another-secret' });
    await expect(add(wrong)).rejects.toMatchObject({ code: 'portal_exists' });
    await expect(add({ ...wrong, replace: true })).rejects.toMatchObject({ code: 'client_rejected' });
    await hub.addAppliance('wallbox', 'Monitoring');
    await hub.pair('wallbox', emulator);
    await settled(await add(home({ replace: true, keys: { ...home().keys, token_lifetime: '30m' } })));
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });
  });

  test('a hub that is killed after it has stored a portal has the portal at its next start', async () => {
    await start({ here: false });
    await add(home());
    await hub.kill('SIGKILL');
    await hub.launch();
    expect(await names()).toEqual(['home']);
  });
});

describe('an added portal', () => {
  test('a portal in use is not removed, and an unused one is', async () => {
    await start();
    await settled(await add(home()));
    await hub.addAppliance('wallbox');
    await hub.addConnection('shared');
    await expect(remove('home')).rejects.toMatchObject({
      code: 'portal_in_use',
      message: expect.stringContaining('shared and wallbox log in at the portal home'),
    });
    await hub.ask((control) => control.request('removeAppliance', { name: 'wallbox' }));
    await hub.ask((control) => control.request('removeConnection', { name: 'shared' }));
    await settled(await remove('home'));
    expect(await names()).toEqual([]);
    await expect(remove('home')).rejects.toMatchObject({ code: 'portal_unknown' });
  });

  test('a backup contains the added portals, and another hub has them after it was restored', async () => {
    await start();
    await settled(await add(home()));
    const passphrase = 'a long passphrase for this test';
    const { copy } = await hub.ask((control) => control.request('backUp', { passphrase }));
    await hub[Symbol.asyncDispose]();
    await start();
    await hub.ask((control) => control.request('restore', { copy, passphrase }));
    await eventually(async () => (await names().catch(() => [''])).includes('home'));
    await hub.addAppliance('wallbox', 'Monitoring');
    await hub.pair('wallbox', emulator);
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', portal: 'home' });
  });

  test('the doctor checks the added portals, or says that there is none, and its archive has no secret of theirs', async () => {
    await start();
    const without = await hub.cli('doctor');
    expect(without.stdout).toMatch(/^warn +hub +No portal is chosen yet\. Choose one/m);
    await settled(await add(home()));
    const archive = join(hub.directory, 'diagnostics.tar.gz');
    expect((await hub.cli('doctor', '--bundle', archive)).stdout).toMatch(/^ok +portal\.home\.client +/m);
    for (const text of (await unpackDiagnostics(archive)).values()) expect(text).not.toContain(emulator.clientSecret);
  });
});
