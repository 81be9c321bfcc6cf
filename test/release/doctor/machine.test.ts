// The doctor on a machine whose clock is wrong.
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { runDoctorWithin } from '../../doctor/doctor-within.ts';
import { prepareSiteHub } from '../../site/site-hubs.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { startPostgres } from '../../support/postgres/server.ts';

const FAKETIME = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`;

it("the doctor recognises a clock that is a year ahead by the portal's time", async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+400d', DONT_FAKE_MONOTONIC: '1' };
  expect((await runDoctorWithin(hub, [], env)).get('clock')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/34\d{6} s ahead of http/),
  });
  expect((await runDoctorWithin(hub, [], { ...env, FAKETIME: '1999-12-31 23:00:00' })).get('clock')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/the clock is wrong, it says 1999-/),
  });
});

it('the doctor reports an expired portal certificate, and that the clock may be wrong', async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator({ tls: true });
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+9000d', DONT_FAKE_MONOTONIC: '1' };
  const found = await runDoctorWithin(hub, [], env);
  expect(found.get('portal.home.base_url'), JSON.stringify([...found.values()])).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(
      /it expired on \d{4}-\d\d-\d\d, and this machine's clock says 20\d\d-.*the check "clock" says/,
    ),
  });
});

it("the doctor sends nobody to a server whose certificate is not valid by this machine's clock", async (ctx) => {
  const reason = existsSync(FAKETIME) ? postgresSkipReason() : 'libfaketime is missing';
  if (reason !== null) ctx.skip(reason);
  await using server = await startPostgres();
  await using hub = await prepareSiteHub(await server.createDatabase(), 'attic');
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+9000d', DONT_FAKE_MONOTONIC: '1' };
  expect((await runDoctorWithin(hub, [], env)).get('database')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/certificate has expired\): check the clock of this hub and the dates of [^:]*$/),
  });
});
