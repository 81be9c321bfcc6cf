import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openLanService } from '../../src/broker/lan-service.ts';
import { rememberSecrets } from '../support/logs.ts';
import { Home } from './home.ts';

test('nothing is said of device flows and callbacks before the pairings of the last run are taken up', async () => {
  await using home = await Home.start();
  const { appliance } = await home.add('wallbox');
  const outcome = await home.run.deviceFlows.begin(appliance, null);
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  const { deviceCode, userCode } = outcome.authorization;
  rememberSecrets([deviceCode.reveal()]);
  const ready = Promise.withResolvers<void>();
  const service = openLanService(
    { ...home.run, ready: ready.promise },
    { started: home.time.now(), caFingerprint: () => '', tokenRequested() {} },
  );
  let answers = 0;
  const questions = [
    service.pollDeviceFlow(appliance, deviceCode.reveal()),
    service.pairingByUserCode(userCode),
    service.receiveCallback('a nonce of nobody', { kind: 'nothing' }, { address: '', mark: null, pass: null }),
  ] as const;
  for (const question of questions) void question.then(() => answers++);
  await sleep(20);
  expect(answers).toBe(0);
  ready.resolve();
  expect(await Promise.all(questions)).toMatchObject([{ kind: 'pending' }, { appliance: 'wallbox' }, null]);
});
