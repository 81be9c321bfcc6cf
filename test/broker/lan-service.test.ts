import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLanService } from '../../src/broker/lan-service.ts';
import { BrokerHarness } from './broker-harness.ts';
import { beginFlow } from './logins.ts';

test('polls, user codes and callbacks wait until the pairings of the previous run are loaded', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { deviceCode, userCode } = await beginFlow(harness);
  const ready = Promise.withResolvers<void>();
  const service = createLanService(
    { ...harness.run, ready: ready.promise },
    { started: harness.time.now(), caFingerprint: () => '', tokenRequested() {} },
  );
  let responses = 0;
  const requests = [
    service.pollDeviceFlow(appliance, deviceCode.reveal(), Number.POSITIVE_INFINITY),
    service.findPairingByUserCode(userCode),
    service.receiveCallback(
      'a nonce of nobody',
      { kind: 'nothing' },
      { address: '', browserToken: null, batchToken: null },
    ),
  ] as const;
  for (const request of requests) void request.then(() => responses++);
  await sleep(20);
  expect(responses).toBe(0);
  ready.resolve();
  expect(await Promise.all(requests)).toMatchObject([{ kind: 'pending' }, { connection: 'wallbox' }, null]);
});
