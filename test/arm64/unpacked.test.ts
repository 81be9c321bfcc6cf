import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { arm64Root, emulated, whyNoArm64 } from '../support/arm64.ts';
import { HubProcess } from '../support/hub-process.ts';
import { arm64Package } from './package.ts';

const run = promisify(execFile);

/** Of a Raspberry Pi 5, in bytes. */
const LARGE_PAGES = 16_384;

it('runs the demo from the unpacked arm64 package without a bad hand-out, and a hub with the pages of a Pi 5', async (ctx) => {
  const missing = await whyNoArm64();
  if (missing !== null) ctx.skip(missing);
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-arm64-'));
  ctx.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await run('dpkg-deb', ['--extract', await arm64Package(), `${folder}/tree`]);
  const root = await arm64Root();
  const latchkey = (pageSize?: number) => [
    ...emulated(root, `${folder}/tree/usr/lib/latchkey/bin/node`, pageSize),
    `${folder}/tree/usr/lib/latchkey/dist/main.js`,
  ];

  const { status, stdout, stderr } = await demo(latchkey(), folder);
  expect(status, stderr).toBe(0);
  const { appliances, hand_outs, bad_hand_outs, refreshes } = JSON.parse(stdout) as Record<string, number>;
  expect({ appliances, bad_hand_outs }).toEqual({ appliances: 3, bad_hand_outs: 0 });
  expect(hand_outs).toBeGreaterThan(10);
  expect(refreshes).toBeGreaterThan(0);

  await serves(latchkey(LARGE_PAGES));
});

async function demo([qemu = '', ...latchkey]: readonly string[], home: string) {
  const env = { PATH: process.env['PATH'], HOME: home };
  const args = [...latchkey, 'demo', '--auto', '--for', '20s', '--json'];
  return run(qemu, args, { env }).then(
    (said) => ({ status: 0, ...said }),
    (error: { code: number; stdout: string; stderr: string }) => ({ ...error, status: error.code }),
  );
}

/** A hub is paired and hands out a token, is killed, and has its grant again. */
async function serves([qemu = '', ...latchkey]: readonly string[]): Promise<void> {
  await using emulator = await startEmulator();
  // The Node and the program that other tests run make way for those of the package.
  const within = ['sh', '-c', `shift 2; exec "$0" ${latchkey.join(' ')} "$@"`, qemu];
  await using hub = await HubProcess.start({ emulator, within });
  expect(await readFile(`/proc/${hub.pid}/cmdline`, 'utf8')).toContain('/usr/lib/latchkey/bin/node');
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const { body } = await hub.requestToken(wallbox);
  expect(body).toMatchObject({ access_token: expect.any(String), token_type: 'Bearer' });
  await hub.kill('SIGKILL');
  await hub.launch();
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });
}
