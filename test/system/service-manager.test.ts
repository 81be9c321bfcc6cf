import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SystemdNotifier } from '../../src/system/systemd-notifier.ts';
import { FakeTime } from '../support/fake-time.ts';
import { eventually } from '../support/hub-process.ts';
import { NotifySocket, systemdSkipReason } from '../support/notify-socket.ts';
import { stateFolder } from '../support/state-folder.ts';

/** A replacement of systemd-notify. */
function program(folder: string, script: string): string {
  const path = join(folder, 'program');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** What the replacement was run with so far. */
const sentBy = (path: string) => (existsSync(`${path}.sent`) ? readFileSync(`${path}.sent`, 'utf8') : '');

describe('notifications to systemd', () => {
  test.skipIf(systemdSkipReason)(
    'notifications to systemd are sent in order, and only the newest of many status lines',
    async () => {
      await using socket = await NotifySocket.listen();
      const service = new SystemdNotifier({ env: { NOTIFY_SOCKET: socket.path } });
      service.ready('up');
      for (let i = 1; i <= 50; i++) service.status(`line ${i}`);
      for (let i = 1; i <= 50; i++) service.feedWatchdog();
      service.reloading();
      service.ready('two\nlines');
      service.stopping();
      await socket.waitForAssignment('STOPPING=1');
      expect(socket.messages).toEqual([
        ['READY=1', 'STATUS=up'],
        ['STATUS=line 50'],
        ['WATCHDOG=1'],
        ['RELOADING=1', expect.stringMatching(/^MONOTONIC_USEC=\d+$/)],
        ['READY=1', 'STATUS=two lines'],
        ['STOPPING=1', 'STATUS=Stopping'],
      ]);
      const [monotonic] = socket.valuesOf('MONOTONIC_USEC').map(Number);
      expect(Math.abs(Number(process.hrtime.bigint() / 1000n) - (monotonic ?? 0))).toBeLessThan(60_000_000);
    },
  );

  test('programs that the daemon starts do not inherit the notify socket', () => {
    const env: NodeJS.ProcessEnv = { NOTIFY_SOCKET: '/run/systemd/notify', PATH: '/usr/bin' };
    expect(new SystemdNotifier({ env }).isAvailable).toBe(true);
    expect(env).toEqual({ PATH: '/usr/bin' });
  });

  test.each([
    ['fails', (folder: string) => program(folder, 'echo "$@" >>"$0.sent"; exit 1')],
    ['is missing', () => '/nowhere/systemd-notify'],
  ])('a notification is lost without effect if systemd-notify %s', async (_, make) => {
    using folder = stateFolder();
    const path = make(folder.path);
    const service = new SystemdNotifier({ env: { NOTIFY_SOCKET: '/nowhere' }, program: path });
    service.ready('up');
    service.stopping();
    // An error that nobody handles fails the test run.
    if (path.startsWith(folder.path)) await expect.poll(() => sentBy(path)).toMatch(/READY=1.*\nSTOPPING=1/);
    else await new Promise((resolve) => setTimeout(resolve, 100));
  });

  test('the next notification is sent after a timeout if systemd-notify hangs', async () => {
    using folder = stateFolder();
    const time = new FakeTime();
    const path = program(folder.path, 'echo "$@" >>"$0.sent"; case $1 in READY=1) exec sleep 30;; esac');
    const sent = () => sentBy(path);
    const service = new SystemdNotifier({ env: { NOTIFY_SOCKET: '/nowhere' }, program: path, timers: time });
    service.ready('up');
    service.stopping();
    await eventually(async () => sent().includes('READY=1'));
    expect(sent()).not.toContain('STOPPING=1');
    await time.pass(10_000);
    await eventually(async () => sent().includes('STOPPING=1'));
  });
});

test.each([
  [{ WATCHDOG_USEC: '90000000', WATCHDOG_PID: String(process.pid) }, 90_000],
  [{ WATCHDOG_USEC: '90000000' }, 90_000],
  [{ WATCHDOG_USEC: '90000000', WATCHDOG_PID: '1' }, null],
  [{ WATCHDOG_USEC: 'often' }, null],
  [{}, null],
])('the watchdog interval for the environment %j is %s', (env, watchdog) => {
  expect(new SystemdNotifier({ env: { NOTIFY_SOCKET: '/nowhere', ...env } }).watchdogInterval).toBe(watchdog);
  expect(new SystemdNotifier({ env }).watchdogInterval).toBe(null);
});
