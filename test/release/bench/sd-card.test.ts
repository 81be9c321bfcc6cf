import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from 'vitest';
import { HERE } from '../../../scripts/bench.d/hub.ts';
import { type SdCardHub, startSdCardHub } from '../../../scripts/bench.d/sd-card.ts';
import { canTraceSystemCalls } from '../../chaos/system-calls.ts';
import { selectRows } from '../../support/long.ts';

const APPLIANCES = 6;
/** The emulator's tokens, and larger ones, which cause more writes. */
const [SHORT, LONG] = [81, 1800];

describe.each(selectRows([SHORT, LONG], [LONG]))('disk writes with tokens of %s characters', (characters) => {
  let home: SdCardHub;

  beforeAll(async () => {
    if (canTraceSystemCalls()) home = await startSdCardHub(HERE, { appliances: APPLIANCES, characters });
  });

  afterAll(() => home?.[Symbol.asyncDispose]());

  beforeEach((ctx: TestContext) => {
    if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  });

  test('issuing a token writes nothing to the disk and waits for no sync', async () => {
    const { syncs, writes, bytes } = await home.watched(() => home.requestTokens(30));
    expect({ syncs, writes, bytes }).toEqual({ syncs: 0, writes: 0, bytes: 0 });
  });

  test('a refresh takes at most three syncs and 16 kB on average, checkpoints of the WAL included', async () => {
    let refreshes = 0;
    const { syncs, bytes } = await home.watched(async () => {
      for (let time = 0; time < 5; time++) refreshes += await home.refreshEach();
    });
    expect(syncs / refreshes).toBeGreaterThanOrEqual(2);
    expect(syncs / refreshes).toBeLessThanOrEqual(3);
    expect(bytes / refreshes).toBeLessThanOrEqual(16_000);
  });

  test('refreshes that are due together take fewer commits than there are refreshes', async () => {
    // On a busy machine they may come one after another, so several attempts are made.
    let fewest = Infinity;
    for (let time = 0; time < 10 && fewest >= APPLIANCES; time++) {
      const { calls } = await home.watched(() => home.refreshTogether());
      const syncs = calls.filter(({ name, on }) => name === 'fdatasync' && on.endsWith('/latchkey.db-wal')).length;
      expect(syncs).toBeGreaterThanOrEqual(2);
      fewest = Math.min(fewest, syncs);
    }
    expect(fewest).toBeLessThan(APPLIANCES);
  });
});
