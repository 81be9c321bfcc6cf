import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLanService } from '../../src/broker/lan-service.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';

test('polls, user codes and callbacks wait until the pairings of the previous run are loaded', async () => {
  await using home = await BrokerHarness.start();
  const { appliance } = await home.addAppliance('wallbox');
  const outcome = await home.run.deviceFlows.begin(appliance, null);
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  const { deviceCode, userCode } = outcome.authorization;
  rememberSecrets([deviceCode.reveal()]);
  const ready = Promise.withResolvers<void>();
  const service = createLanService(
    { ...home.run, ready: ready.promise },
    { started: home.time.now(), caFingerprint: () => '', tokenRequested() {} },
  );
  let answers = 0;
  const questions = [
    service.pollDeviceFlow(appliance, deviceCode.reveal()),
    service.findPairingByUserCode(userCode),
    service.receiveCallback(
      'a nonce of nobody',
      { kind: 'nothing' },
      { address: '', browserBinding: null, pass: null },
    ),
  ] as const;
  for (const question of questions) void question.then(() => answers++);
  await sleep(20);
  expect(answers).toBe(0);
  ready.resolve();
  expect(await Promise.all(questions)).toMatchObject([{ kind: 'pending' }, { appliance: 'wallbox' }, null]);
});
