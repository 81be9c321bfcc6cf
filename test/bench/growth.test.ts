import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refreshSteps } from '../../scripts/bench.d/growth/scheduling.ts';
import { openStore } from '../../src/store/open-store.ts';
import { jweSealing } from '../../src/store/sealing.ts';
import { grantOf } from '../core/samples.ts';
import { KEY, WALLBOX } from '../store/opened.ts';
import { stateFolder } from '../support/state-folder.ts';

const root = join(import.meta.dirname, '../..');
const STEPS = 500;

test('a refresh arms as many timers and reads the clock as often, however many grants there are', async () => {
  const few = await refreshSteps({ root }, 10, STEPS);
  const many = await refreshSteps({ root }, 2000, STEPS);
  expect(many).toMatchObject({ armed: few.armed, readings: few.readings, timers: few.timers });
  // One for the next that is due, one that tells whether this one hangs.
  expect(many.armed).toBe(2);
  expect(many.timers).toBe(2);
});

test('however many grants there are at the start, one is opened at a time', async () => {
  using folder = stateFolder();
  const { seal, open } = jweSealing(KEY);
  const atOnce = { now: 0, most: 0 };
  const counting = {
    seal,
    async open(row: string, sealed: string): Promise<string> {
      atOnce.now += 1;
      atOnce.most = Math.max(atOnce.most, atOnce.now);
      const text = await open(row, sealed);
      atOnce.now -= 1;
      return text;
    },
  };
  const count = 50;
  using store = await openStore(folder.path, counting, Date.now);
  for (let index = 0; index < count; index += 1) {
    const id = WALLBOX.id.slice(0, -2) + index.toString().padStart(2, '0');
    await store.addAppliance({ ...WALLBOX, id, clientId: id, name: `appliance-${index}` });
    await store.replaceGrant(grantOf({ appliance: id }));
  }
  expect(await store.grants()).toHaveLength(count);
  expect(atOnce.most).toBe(1);
});
