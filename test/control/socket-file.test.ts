import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { connectControlClient } from '../../src/control/client.ts';
import { startControlServer } from '../../src/control/server.ts';
import { groupId } from '../../src/control/socket-file.ts';
import { createLog } from '../../src/system/log.ts';
import { FakeAdministration } from './fake-administration.ts';

function newPath(): string {
  return join(mkdtempSync(join(tmpdir(), 'lk-')), 'control.sock');
}

function serve(path: string, group?: string, log = createLog('silent')) {
  return startControlServer({
    path,
    administration: new FakeAdministration(),
    log,
    ...(group === undefined ? {} : { group }),
  });
}

/** The fields of this process's group in /etc/group. */
function ownGroup(): string[] {
  const lines = readFileSync('/etc/group', 'utf8').split('\n');
  return lines.map((line) => line.split(':')).find(([, , id]) => Number(id) === process.getgid?.()) ?? [];
}

/** Leaves a socket file behind, like a daemon that was killed. */
function leaveDeadSocket(path: string): void {
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
  expect(statSync(path).isSocket()).toBe(true);
}

test('the control socket is only for its owner if its group does not exist', async () => {
  const path = newPath();
  await using _ = await serve(path, 'no-such-group');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('the control socket is for its owner and its group if the group exists', async () => {
  const [name] = ownGroup();
  const path = newPath();
  await using _ = await serve(path, name);
  expect(statSync(path)).toMatchObject({ gid: process.getgid?.() });
  expect(statSync(path).mode & 0o777).toBe(0o660);
});

test('a missing directory of the control socket is created for this user only', async () => {
  const path = join(dirname(newPath()), 'a', 'b', 'control.sock');
  await using _ = await serve(path);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
});

test('the control socket gets its group if that exists, and the hub logs it if it may not set the group', async () => {
  const [name = '', , id] = readFileSync('/etc/group', 'utf8').split('\n').at(-2)?.split(':') ?? [];
  expect(await groupId(name)).toBe(Number(id));
  expect(await groupId('no-such-group')).toBeNull();
  expect(await groupId(name, '/nowhere')).toBeNull();
  const lines: string[] = [];
  const path = newPath();
  await using _ = await serve(path, name, createLog('info', { write: (line) => lines.push(line) }));
  const { gid, mode } = statSync(path);
  if (process.getuid?.() === 0) expect(gid).toBe(Number(id));
  expect(mode & 0o777).toBe(gid === Number(id) ? 0o660 : 0o600);
  if (gid !== Number(id)) expect(lines.join('')).toContain('control_socket_group_not_set');
});

test('the hub replaces the control socket of a dead daemon', async () => {
  const path = newPath();
  leaveDeadSocket(path);
  await using _ = await serve(path);
  await using control = await connectControlClient([path]);
  expect((await control.request('status')).hub.name).toBe('Cellar hub');
  expect(readdirSync(dirname(path))).toEqual(['control.sock']);
});

test('the hub does not replace the control socket of a running daemon, which continues', async () => {
  const path = newPath();
  await using _ = await serve(path);
  await expect(serve(path)).rejects.toMatchObject({
    code: 'control_socket_taken',
    message: expect.stringContaining(path),
  });
  await using control = await connectControlClient([path]);
  expect((await control.request('status')).hub.name).toBe('Cellar hub');
  expect(readdirSync(dirname(path))).toEqual(['control.sock']);
});

test('one of eight daemons that start at once gets the control socket', async () => {
  const path = newPath();
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => serve(path)));
  const winners = all.filter((one) => one.status === 'fulfilled');
  expect(winners).toHaveLength(1);
  for (const one of all)
    if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'control_socket_taken' });
  await using control = await connectControlClient([path]);
  await control.request('status');
  expect(readdirSync(dirname(path))).toEqual(['control.sock']);
  for (const { value } of winners) await value[Symbol.asyncDispose]();
  expect(readdirSync(dirname(path))).toEqual([]);
});

test('closing the control server leaves the socket of its successor alone', async () => {
  const path = newPath();
  const first = await serve(path);
  unlinkSync(path);
  await using _ = await serve(path);
  await first[Symbol.asyncDispose]();
  await using control = await connectControlClient([path]);
  expect((await control.request('status')).hub.name).toBe('Cellar hub');
});

test('the hub does not replace a file that is not a socket', async () => {
  const path = newPath();
  writeFileSync(path, 'precious');
  await expect(serve(path)).rejects.toMatchObject({ code: 'control_socket_taken' });
  expect(readFileSync(path, 'utf8')).toBe('precious');
});

test('a control socket path that is too long is rejected with its length in bytes', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'lk-'));
  const longest = join(directory, 'ä'.repeat(60)).slice(0, -60);
  const path = longest + 'x'.repeat(107 - Buffer.byteLength(longest));
  await using _ = await serve(path);
  expect(existsSync(path)).toBe(true);
  await expect(serve(`${path}x`)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(/at most 107 bytes.*108 bytes/),
  });
});

test('a directory that can not be written to is reported with the key of the control socket', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'lk-'));
  writeFileSync(join(directory, 'file'), '');
  await expect(serve(join(directory, 'file', 'control.sock'))).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('hub.control_socket'),
  });
});

test('the control client without a hub reports where it looked, and what to do', async () => {
  const dead = newPath();
  leaveDeadSocket(dead);
  await expect(connectControlClient(['/nowhere/control.sock', dead])).rejects.toMatchObject({
    code: 'hub_not_running',
    message: expect.stringMatching(
      /\/nowhere\/control\.sock does not exist.*has no listener.*latchkey serve.*--config/,
    ),
  });
});

test('the control client uses the first socket with a listener', async () => {
  const dead = newPath();
  leaveDeadSocket(dead);
  const path = newPath();
  await using _ = await serve(path);
  await using control = await connectControlClient(['/nowhere/control.sock', dead, path]);
  expect((await control.request('status')).hub.name).toBe('Cellar hub');
});
