import { expect } from 'vitest';
import {
  expectRejections,
  FakeClock,
  get,
  obtainTokens,
  requestEmulatorApi,
  startTestEmulator,
  test,
} from './portal-client.ts';

test("the emulator's Date header, log and grants follow its clock after the API has advanced it", async ({
  emulator,
  clock,
}) => {
  expect(await (await get(`${emulator.baseUrl}/_emulator/clock`)).json()).toEqual({
    now: '2031-05-05T06:07:08.000Z',
    offset: 0,
  });
  const response = await requestEmulatorApi(emulator, 'POST', 'clock', { advance: 3600 });
  expect(response.status).toBe(200);
  expect(response.headers.get('date')).toBe('Mon, 05 May 2031 07:07:08 GMT');
  expect(await response.json()).toEqual({ now: '2031-05-05T07:07:08.000Z', offset: 3600 });
  await requestEmulatorApi(emulator, 'POST', 'clock', { advance: 0.5 });
  clock.pass(1);
  await obtainTokens(emulator);
  expect(emulator.clock).toEqual({ now: '2031-05-05T07:07:09.500Z', offset: 3600.5 });
  expect(emulator.requests[0]?.time).toBe('2031-05-05T07:07:09.500Z');
  expect(emulator.grants()[0]?.createdAt).toBe(Date.UTC(2031, 4, 5, 7, 7, 9, 500));
});

test('the emulator rejects an invalid advance of its clock, names the member and changes nothing', async () => {
  await using emulator = await startTestEmulator({ clock: new FakeClock() });
  await expectRejections(emulator, 'POST', 'clock', [
    [{ advance: -1 }, /^advance: must be .*\(found -1\)$/],
    [{ advance: '60' }, /^advance: must be .*\(found "60"\)$/],
    [{ advance: 1e12 }, /^advance: must be .*\(found 1000000000000\)$/],
    [{ advance: 1, by: 2 }, /^by: is unknown; allowed: advance$/],
    ['{', /^body: /],
    ['{"advance": 1e999}', /^advance: must be .*\(found Infinity\)$/],
  ]);
  expect((await requestEmulatorApi(emulator, 'POST', 'clock', { advance: 1 }, 'text/plain')).status).toBe(400);
  expect(() => emulator.advance(JSON.parse('"3"'))).toThrow(/^advance: must be .*\(found "3"\)$/);
  expect(() => emulator.advance(Number.NaN)).toThrow(/^advance: must be .*\(found NaN\)$/);
  expect(emulator.clock.offset).toBe(0);
});
