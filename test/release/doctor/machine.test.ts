// The doctor on a machine whose clock is wrong.
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { runDoctorWithin } from '../../doctor/doctor-within.ts';
import { finding } from '../../doctor/finding.ts';
import { HubProcess } from '../../support/hub-process.ts';

const FAKETIME = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`;

it("the doctor recognises a clock that is a year ahead by the portal's time", async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+400d', DONT_FAKE_MONOTONIC: '1' };
  expect(finding(await runDoctorWithin(hub, [], env), 'clock')).toMatch(/^fail: .*(399|400) d ahead of http/);
  expect(finding(await runDoctorWithin(hub, [], { ...env, FAKETIME: '1999-12-31 23:00:00' }), 'clock')).toMatch(
    /^fail: .*the clock is wrong, it says 1999-/,
  );
});

it('the doctor reports an expired portal certificate, and that the clock may be wrong', async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator({ tls: true });
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+9000d', DONT_FAKE_MONOTONIC: '1' };
  const found = await runDoctorWithin(hub, [], env);
  expect(finding(found, 'portal.home.base_url')).toMatch(
    /^fail: .*it expired on \d{4}-\d\d-\d\d, and this machine's clock says 20\d\d-.*the check "clock" says/,
  );
});
