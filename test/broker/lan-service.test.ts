import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLanService } from '../../src/broker/lan-service.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';
import { HUB } from './broker-services.ts';
import { beginFlow } from './logins.ts';

test('a poll and its refresh token wait for a slow store no longer than until the response is due, and may be repeated', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { deviceCode } = await beginFlow(harness);
  const [ready, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const service = createLanService(
    { ...harness.run, ready: ready.promise },
    { hub: HUB, started: harness.time.now(), caFingerprint: () => '', tokenRequested() {} },
  );
  harness.delayedWrites.set('sessions.save', written.promise);
  const deadline = harness.time.uptime + 9500;
  const create = (due: number) => service.createSession(appliance, 'a device code', 'wallbox', due);
  const late = Promise.all([service.pollDeviceFlow(appliance, deviceCode.reveal(), deadline), create(deadline)]);
  harness.time.skip(9500);
  expect(await late).toEqual([null, null]);
  ready.resolve();
  written.resolve();
  const due = harness.time.uptime + 9500;
  expect(await service.pollDeviceFlow(appliance, deviceCode.reveal(), due)).toEqual({ kind: 'pending' });
  const token = await create(due);
  rememberSecrets([token?.reveal() ?? '']);
  expect(service.findSession(appliance, token?.reveal() ?? '')).toEqual({ connection: 'wallbox' });
});

test('polls, user codes and callbacks wait until the pairings of the previous run are loaded', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { deviceCode, userCode } = await beginFlow(harness);
  const ready = Promise.withResolvers<void>();
  const service = createLanService(
    { ...harness.run, ready: ready.promise },
    { hub: HUB, started: harness.time.now(), caFingerprint: () => '', tokenRequested() {} },
  );
  let responses = 0;
  const requests = [
    service.pollDeviceFlow(appliance, deviceCode.reveal(), Number.POSITIVE_INFINITY),
    service.findPairingByUserCode(userCode),
    service.receiveResponse(
      { nonce: 'a nonce of nobody', response: { kind: 'nothing' } },
      { address: '', browserToken: null, batchToken: null },
    ),
  ] as const;
  for (const request of requests) void request.then(() => responses++);
  await sleep(20);
  expect(responses).toBe(0);
  ready.resolve();
  expect(await Promise.all(requests)).toMatchObject([{ kind: 'pending' }, { connection: 'wallbox' }, null]);
});
