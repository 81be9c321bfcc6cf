import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts';
import { HubProcess, type HubProcessOptions } from '../../support/hub-process.ts';
import { AS_NOBODY } from '../../support/unprivileged.ts';
import { supervise } from '../../systemd/supervised.ts';

/** Nobody listens on this socket: notifications are lost without an effect. */
const NOTIFY = '/nowhere/notify';

let emulator: Emulator;

beforeAll(async () => {
  emulator = await startEmulator();
});

afterAll(() => emulator.close());

function prepared(options: HubProcessOptions = {}): Promise<HubProcess> {
  return HubProcess.prepare({ emulator, ...options });
}

/** The hub ended with this status, after one line with the priority of an error. */
async function expectEnd(hub: HubProcess, status: number, messages: readonly string[], options = {}): Promise<void> {
  await using daemon = supervise(hub, NOTIFY, options);
  expect({ ...(await daemon.ended), log: daemon.log() }).toEqual({
    status,
    signal: null,
    log: [expect.stringMatching(/^<3>latchkey: \S/)],
  });
  for (const message of messages) expect(daemon.log()[0]).toContain(message);
}

test('a missing credential ends the daemon with status 78 and a line that says where it belongs', async () => {
  await using hub = await prepared();
  await rm(join(hub.directory, 'portal.secret'));
  const credentials = join(hub.directory, 'credentials');
  await mkdir(credentials);
  const env = { CREDENTIALS_DIRECTORY: credentials };
  await expectEnd(hub, 78, ['portals.home.client_secret_file', '/etc/latchkey/credentials', 'restart'], { env });
});

test.each(['http', 'https'] as const)(
  'a taken %s port ends the daemon with status 78 and a line that names it',
  async (kind) => {
    await using hub = await prepared();
    const port = kind === 'http' ? hub.httpPort : hub.httpsPort;
    await using _other = createServer().listen(port, '127.0.0.1');
    await expectEnd(hub, 78, [`lan.${kind}_port`, `port ${port} on 127.0.0.1`, 'another program uses it']);
  },
);

test('an address that the machine does not have yet ends the daemon with status 1, so that systemd restarts it', async () => {
  await using hub = await prepared();
  await expectEnd(hub, 1, ['lan.listen: 192.0.2.1'], { env: { LATCHKEY_LAN_LISTEN: '192.0.2.1' } });
});

// The hub would follow what that user put there, and leave files behind that the user can't read.
test.skipIf(process.getuid?.() !== 0)(
  'a state directory of another user ends the daemon with status 78, also as root',
  async () => {
    await using hub = await prepared();
    const state = join(hub.directory, 'state');
    chownSync(state, 65_534, 65_534);
    await expectEnd(hub, 78, [`${state} (hub.state_dir) belongs to another user (uid 65534): `]);
    expect(readdirSync(state)).toEqual([]);
  },
);

test.skipIf(process.getuid?.() !== 0 || !existsSync('/usr/bin/setpriv'))(
  'a state directory of another user ends the daemon with status 78 as an ordinary user',
  async () => {
    await using hub = await prepared();
    await chmod(hub.directory, 0o755);
    for (const file of ['latchkey.toml', 'portal.secret']) chownSync(join(hub.directory, file), 65_534, 65_534);
    const env = { LATCHKEY_HUB_CONTROL_SOCKET: `${hub.directory}/control.sock`, CACHE_DIRECTORY: '/nowhere' };
    await expectEnd(hub, 78, [`${hub.directory}/state`, 'hub.state_dir'], { within: AS_NOBODY, env });
    // A directory that can't be searched, such as systemd's /var/lib/private.
    chmodSync(join(hub.directory, 'state'), 0o700);
    const deeper = { ...env, LATCHKEY_HUB_STATE_DIR: `${hub.directory}/state/private` };
    await expectEnd(hub, 78, [`${hub.directory}/state/private`, 'belongs to another user'], {
      within: AS_NOBODY,
      env: deeper,
    });
    // A key that root has restored by hand.
    const state = join(hub.directory, 'state');
    const key = join(state, 'store.key');
    chownSync(state, 65_534, 65_534);
    writeFileSync(key, randomBytes(32).toString('base64url'), { mode: 0o600 });
    await expectEnd(hub, 78, [`the store key ${key} can't be read: `, `"chown --reference=${state}/. ${key}"`], {
      within: AS_NOBODY,
      env,
    });
  },
);

test('a store of another schema ends the daemon with status 78', async () => {
  await using hub = await prepared();
  const database = new Database(join(hub.directory, 'state/latchkey.db'));
  database.pragma('user_version = 9999');
  database.exec('CREATE TABLE later (what TEXT)');
  database.close();
  writeFileSync(join(hub.directory, 'state/store.key'), randomBytes(32).toString('base64url'), { mode: 0o600 });
  await expectEnd(hub, 78, ['schema 9999', 'knows only schema']);
});

test('an invalid store key ends the daemon with status 78', async () => {
  await using hub = await prepared();
  writeFileSync(join(hub.directory, 'state/store.key'), 'too-short', { mode: 0o600 });
  await expectEnd(hub, 78, ['store.key', '32 bytes']);
});

test('a second daemon with the state, control socket or ports of a running hub ends with status 78', async () => {
  await using hub = await HubProcess.start({ emulator });
  await expectEnd(hub, 78, [hub.directory]);
  const ownSocket = { LATCHKEY_HUB_CONTROL_SOCKET: 'own.sock' };
  await expectEnd(hub, 78, [join(hub.directory, 'state')], { env: ownSocket });
  // As a person does who tries it out while the service runs.
  const env = { LATCHKEY_HUB_STATE_DIR: join(hub.directory, 'own'), LATCHKEY_HUB_CONTROL_SOCKET: undefined };
  await expectEnd(hub, 78, ['lan.https_port'], { env });
  await using other = await HubProcess.prepare({ emulator });
  const ports = {
    LATCHKEY_LAN_HTTP_PORT: String(hub.httpPort),
    LATCHKEY_LAN_HTTPS_PORT: String(hub.httpsPort),
  };
  await expectEnd(other, 78, ['lan.https_port'], { env: ports });
  const socket = join(hub.directory, 'state/control.sock');
  await expectEnd(other, 78, [socket], { env: { LATCHKEY_HUB_CONTROL_SOCKET: socket } });
  expect((await hub.status()).hub.https_port).toBe(hub.httpsPort);
});

test('without systemd a permanent error ends the daemon with status 1 and a line without a priority', async () => {
  await using hub = await prepared({ lan: 'port = 80' });
  await using daemon = supervise(hub, '', { env: { JOURNAL_STREAM: '1:2' } });
  expect({ ...(await daemon.ended), log: daemon.log() }).toEqual({
    status: 1,
    signal: null,
    log: [expect.stringMatching(/^latchkey: .*lan\.port/)],
  });
});
