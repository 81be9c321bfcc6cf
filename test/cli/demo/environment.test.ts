import { expect, test } from 'vitest';
import { setUpDemo } from '../../../src/cli/demo/environment.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { createLog } from '../../../src/system/log.ts';
import { scaleDeadline } from '../../support/deadlines.ts';

// The hub itself waits for a minute.
test(
  'the demo ends at once, even if a fault holds back the response to a refresh',
  async () => {
    const parts = new AsyncDisposableStack();
    const { administration, emulators } = await setUpDemo(parts, systemClock(), createLog('error'), false);
    const [portal] = emulators;
    const pairing = await administration.pair('wallbox');
    for await (const report of administration.followPairing(pairing, new AbortController().signal)) {
      if (report.event === 'waiting') {
        const state = new URL(report.authorizeUrl).searchParams.get('state') ?? '';
        const { location } = await portal.login({ state, user: 'demo' });
        await fetch(location);
      }
    }
    portal.addFault({ endpoint: 'token', kind: 'hang', times: null });
    const refresh = administration.refresh('wallbox').catch(() => undefined);
    await expect.poll(() => portal.faults[0]?.hits).toBe(1);
    await parts.disposeAsync();
    await refresh;
  },
  scaleDeadline(6_000),
);
