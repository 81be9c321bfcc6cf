import { expect, test } from 'vitest';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import { startOn } from '../command.ts';
import { startCloudHub } from './cloud-hub.ts';

/** The `waiting` events that `pair --json` has printed. */
function waitingEvents(stdout: string): { authorize_url: string; user_code: string; reason?: string }[] {
  return stdout
    .split('\n')
    .filter((line) => line.includes('"waiting"'))
    .map((line) => JSON.parse(line));
}

async function startDeviceHub(options: EmulatorOptions) {
  const house = await startCloudHub('login = "device"', {}, { deviceInterval: 1, ...options });
  return { ...house, pair: (...args: string[]) => startOn(house.hub, 'pair', 'wallbox', ...args) };
}

test('pair prints the link and the code of a device login, and ends when the person has allowed it', async () => {
  await using house = await startDeviceHub({});
  const { emulator } = house;
  const pair = house.pair();
  const printed = await pair.stdout(/code: (\S+)/);
  const userCode = emulator.devices()[0]?.user_code ?? '';
  expect(printed).toContain(`  ${emulator.frontendUrl}/oauth2/device?user_code=${userCode}\n`);
  expect(printed).toContain(`Check that the page there shows this code: ${userCode}\n`);
  emulator.approveDevice({ userCode, user: 'demo' });
  const { status, stdout } = await pair.ended;
  expect(status).toBe(0);
  expect(stdout).toMatch(/[█▀▄]/);
  expect(stdout).toMatch(/wallbox is connected.*\n$/);
});

test('pair prints the fresh code of a device login when one has expired, although its address is the same', async () => {
  await using house = await startDeviceHub({ verificationUriComplete: false });
  const { emulator } = house;
  const text = house.pair();
  await text.stdout(/Enter this code there: \S+\n/);
  emulator.advance(3600);
  const printed = await text.stdout(/Enter this code there: \S+\n[\s\S]*Enter this code there: \S+\n/);
  const codes = [...printed.matchAll(/code there: (\S+)/g)].map(([, code]) => code);
  expect(new Set(codes).size).toBe(2);
  text.process.kill('SIGINT');
  await text.ended;

  const json = house.pair('--json');
  const [first] = waitingEvents(await json.stdout(/"waiting"/));
  expect(Object.keys(first ?? {}).slice(0, 3)).toEqual(['event', 'authorize_url', 'user_code']);
  emulator.advance(3600);
  const [, second] = waitingEvents(await json.stdout(/"waiting"[\s\S]*"waiting"/));
  expect(second).toMatchObject({ authorize_url: first?.authorize_url, reason: 'link_ended' });
  expect(second?.user_code).not.toBe(first?.user_code);
  emulator.approveDevice({ userCode: second?.user_code ?? '', user: 'demo' });
  expect((await json.ended).status).toBe(0);
});
