import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

test('the hub tries a corrected client secret at once after a reload or a restart, and every problem ends', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, here: true });
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const restart = async () => {
    await hub.kill('SIGTERM');
    await hub.launch();
  };
  for (const [index, apply] of [() => hub.reload(), restart].entries()) {
    const correct = async (secret: string) => {
      await writeFile(join(hub.directory, 'portal.secret'), secret);
      await apply();
    };
    await correct('a-secret-of-somebody-else');
    expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
      problem: { code: 'misconfigured' },
    });
    expect((await hub.cli('status')).status).toBe(3);
    await eventually(async () => hub.events('notice').length > 0);
    await correct(emulator.clientSecret);
    await eventually(async () => emulator.grants()[0]?.generation === index + 2);
    await hub.until('wallbox', ({ problem }) => problem === null);
    expect(await hub.status()).toMatchObject({
      appliances: [{ state: 'active' }],
      conditions: [{ code: 'appliance_never_served' }],
      notices: [],
    });
    expect((await hub.cli('status')).status).toBe(0);
  }
});
