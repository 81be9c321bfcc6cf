import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';

test.each(['a reload', 'a restart'])(
  'the hub tries a corrected client secret at once after %s, and every problem ends',
  async (how) => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: how === 'a reload' });
    const apply = async (secret: string) => {
      await writeFile(join(hub.directory, 'portal.secret'), secret);
      if (how === 'a reload') return hub.reload();
      await hub.kill('SIGTERM');
      await hub.launch();
    };
    await hub.addAppliance('wallbox');
    await hub.pair('wallbox', emulator);
    await apply('a-secret-of-somebody-else');
    expect(await hub.ask((control) => control.refresh('wallbox'))).toMatchObject({
      problem: { code: 'misconfigured' },
    });
    expect((await hub.cli('status')).status).toBe(3);
    await eventually(async () => hub.events('notice').length > 0);
    await apply(emulator.clientSecret);
    await eventually(async () => emulator.grants()[0]?.generation === 2);
    await eventually(async () => (await hub.appliance('wallbox')).problem === null);
    expect(await hub.status()).toMatchObject({ appliances: [{ state: 'active' }], conditions: [], notices: [] });
    expect((await hub.cli('status')).status).toBe(0);
  },
);
