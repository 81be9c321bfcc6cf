import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createNtpCheck } from '../../src/system/ntp.ts';
import { stateFolder } from '../support/state-folder.ts';

const NOON = Date.UTC(2031, 4, 5, 12);
const HOUR = 3_600_000;
/** One hour after the boot. */
const now = { boot: 'b', uptime: HOUR, wall: NOON };

/** @param minutes after {@link now} */
function after(minutes: number): typeof now {
  const time = minutes * 60_000;
  return { ...now, uptime: now.uptime + time, wall: now.wall + time };
}

function touch(folder: string, at: number): string {
  const file = join(folder, 'synchronized');
  writeFileSync(file, '');
  utimesSync(file, new Date(at), new Date(at));
  return file;
}

test('systemd-timesyncd confirms the clock if it synchronized in this boot, even if the clock was in 1970 before', async () => {
  using folder = stateFolder();
  const check = (at: number) => createNtpCheck(touch(folder.path, at), '/nonexistent')(now);
  expect(await check(NOON - 10_000)).toBe(true);
  expect(await check(NOON - 59 * 60_000)).toBe(true);
  expect(await check(NOON - 2 * HOUR)).toBe(false);
  expect(await check(NOON + HOUR)).toBe(false);
  expect(await createNtpCheck(join(folder.path, 'absent'), '/nonexistent')(now)).toBe(false);
});

test("a clock before this program's build time is never confirmed", async () => {
  using folder = stateFolder();
  const file = touch(folder.path, 60_000);
  expect(await createNtpCheck(file, '/bin/true')({ boot: 'b', uptime: HOUR, wall: 120_000 })).toBe(false);
});

test('the NTP check asks timedatectl at doubling intervals, at most every ten minutes', async () => {
  using folder = stateFolder();
  const output = join(folder.path, 'said');
  const program = join(folder.path, 'timedatectl');
  writeFileSync(program, `#!/bin/sh\necho asked >>${output}.log\ncat ${output}\n`, { mode: 0o755 });
  writeFileSync(output, 'no\n');
  const check = createNtpCheck(join(folder.path, 'absent'), program);
  const checkTimes: number[] = [];
  for (let minutes = 0, times = 0; minutes <= 36; minutes += 1) {
    expect(await check(after(minutes))).toBe(false);
    const lines = readFileSync(`${output}.log`, 'utf8').split('\n').length - 1;
    if (lines > times) checkTimes.push(minutes);
    times = lines;
  }
  expect(checkTimes).toEqual([0, 1, 3, 7, 15, 25, 35]);
  writeFileSync(output, 'yes\n');
  expect(await check(after(44))).toBe(false);
  expect(await check(after(45))).toBe(true);
});

test('the NTP check asks timedatectl at once after the clock was set', async () => {
  using folder = stateFolder();
  const program = join(folder.path, 'timedatectl');
  writeFileSync(program, '#!/bin/sh\necho no\n', { mode: 0o755 });
  const check = createNtpCheck(join(folder.path, 'absent'), program);
  expect(await check(now)).toBe(false);
  writeFileSync(program, '#!/bin/sh\necho yes\n');
  expect(await check(after(0.1))).toBe(false);
  expect(await check(after(0.1), true)).toBe(true);
});
