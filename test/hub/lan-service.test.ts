import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PortalClock } from '../../src/broker/portal-clock.ts';
import { Sessions } from '../../src/broker/sessions.ts';
import { TimeInquiry } from '../../src/broker/time-inquiry.ts';
import { lanService } from '../../src/hub/lan-service.ts';
import { systemRandom } from '../../src/system/random.ts';
import { Home } from '../broker/home.ts';
import { rememberSecrets } from '../support/logs.ts';

test('nothing is said of device flows and callbacks before the pairings of the last run are taken up', async () => {
  await using home = await Home.start();
  const { appliance } = await home.add('wallbox');
  const outcome = await home.run.deviceFlows.begin(appliance, null);
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  const { deviceCode, userCode } = outcome.authorization;
  rememberSecrets([deviceCode.reveal()]);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const surroundings = { clock: home.time, timers: home.time, random: systemRandom, log, tell() {} };
  const portalClock = new PortalClock(surroundings);
  const ready = Promise.withResolvers<void>();
  const service = lanService({
    ...home.run,
    surroundings,
    started: home.time.now(),
    sessions: await Sessions.load(home.run.store, home.run.scheduler, surroundings),
    portalClock,
    timeInquiry: new TimeInquiry(surroundings, portalClock, () => []),
    knownBefore: new Set(),
    tally: { handedOut() {} },
    introduced() {},
    caFingerprint: () => '',
    ready: ready.promise,
  });
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
