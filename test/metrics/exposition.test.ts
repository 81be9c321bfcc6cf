import { expect, it } from 'vitest';
import { Counters } from '../../src/metrics/counters.ts';
import { renderMetrics } from '../../src/metrics/exposition.ts';
import { applianceStatus, hubStatus, hubStatusReport } from '../control/status-samples.ts';

it('names with quotes and backslashes are escaped in the metrics', async () => {
  const appliances = [applianceStatus({ name: 'a "b" \\ c' })];
  const text = await renderMetrics({
    status: async () => hubStatusReport(hubStatus(), appliances),
    connectionIds: () => new Map(),
    applianceIds: () => new Map(),
    portalsReached: () => new Map(),
    clockOffset: () => null,
    counters: new Counters(),
  });
  expect(text).toContain('latchkey_appliance_info{appliance="a \\"b\\" \\\\ c",connection="a \\"b\\" \\\\ c"} 1\n');
});
