import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ntpWatch } from '../../src/system/ntp.ts';
import { stateFolder } from '../support/state-folder.ts';

const NOON = Date.UTC(2031, 4, 5, 12);
const HOUR = 3_600_000;
/** An hour after the boot. */
const now = { boot: 'b', uptime: HOUR, wall: NOON };

function touched(folder: string, at: number): string {
  const file = join(folder, 'synchronized');
  writeFileSync(file, '');
  utimesSync(file, new Date(at), new Date(at));
  return file;
}

test("systemd-timesyncd's word counts when it is of this boot, by a clock that may have said 1970 before", async () => {
  using folder = stateFolder();
  const ask = (at: number) => ntpWatch(touched(folder.path, at), '/nonexistent')(now);
  expect(await ask(NOON - 10_000)).toBe(true);
  expect(await ask(NOON - 59 * 60_000)).toBe(true);
  expect(await ask(NOON - 2 * HOUR)).toBe(false);
  expect(await ask(NOON + HOUR)).toBe(false);
  expect(await ntpWatch(join(folder.path, 'absent'), '/nonexistent')(now)).toBe(false);
});

test('a clock before the time of this program is not right, whoever says so', async () => {
  using folder = stateFolder();
  const file = touched(folder.path, 60_000);
  expect(await ntpWatch(file, '/bin/true')({ boot: 'b', uptime: HOUR, wall: 120_000 })).toBe(false);
});

test("the kernel's word is asked for at most once a minute", async () => {
  using folder = stateFolder();
  const said = join(folder.path, 'said');
  const program = join(folder.path, 'timedatectl');
  writeFileSync(program, `#!/bin/sh\necho asked >>${said}.log\ncat ${said}\n`, { mode: 0o755 });
  writeFileSync(said, 'no\n');
  const ask = ntpWatch(join(folder.path, 'absent'), program);
  expect(await ask(now)).toBe(false);
  writeFileSync(said, 'yes\n');
  expect(await ask({ ...now, uptime: now.uptime + 5000 })).toBe(false);
  expect(await ask({ ...now, uptime: now.uptime + 60_000 })).toBe(true);
});
