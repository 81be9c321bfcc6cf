import { describe, expect, type TestContext, test } from 'vitest';
import { type CardHome, startCardHome } from '../../scripts/bench.d/sd-card/home.ts';
import { canStopAtCalls } from '../chaos/system-calls.ts';
import { HubProcess } from '../support/hub-process.ts';

const APPLIANCES = 10;

function started(ctx: TestContext, longer = 0): Promise<CardHome> {
  if (!canStopAtCalls()) ctx.skip('needs strace, and the right to use it');
  return startCardHome((options) => HubProcess.prepare(options), APPLIANCES, { longer });
}

test('a hand-out writes nothing, and waits for no sync', async (ctx) => {
  await using home = await started(ctx);
  const { syncs, writes, bytes } = await home.watched(() => home.handOut(100));
  expect({ syncs, writes, bytes }).toEqual({ syncs: 0, writes: 0, bytes: 0 });
});

describe.each([
  ['the emulator’s tokens', 0],
  ['tokens of 1,800 characters', 1719],
])('with %s', (_, longer) => {
  test('a refresh is three syncs and 16 kB at most, the moves of the journal included', async (ctx) => {
    await using home = await started(ctx, longer);
    let refreshes = 0;
    const { syncs, bytes } = await home.watched(async () => {
      for (let time = 0; time < 8; time++) refreshes += await home.refreshEach();
    });
    expect(syncs / refreshes).toBeGreaterThanOrEqual(2);
    expect(syncs / refreshes).toBeLessThanOrEqual(3);
    expect(bytes / refreshes).toBeLessThanOrEqual(16_000);
  });
});

test('refreshes that are due together take fewer commits than there are of them', async (ctx) => {
  await using home = await started(ctx);
  const syncs: number[] = [];
  for (let time = 0; time < 4; time++) {
    const { calls } = await home.watched(() => home.refreshTogether());
    syncs.push(calls.filter(({ name, on }) => name === 'fsync' && on.endsWith('/latchkey.db-wal')).length);
  }
  // Where the machine is busy they come one after the other; it need not be so busy each time.
  expect(Math.min(...syncs)).toBeLessThan(APPLIANCES);
  expect(Math.min(...syncs)).toBeGreaterThanOrEqual(2);
});
