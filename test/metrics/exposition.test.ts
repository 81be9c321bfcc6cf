import { expect, it } from 'vitest';
import { Counters } from '../../src/metrics/counters.ts';
import { Exposition } from '../../src/metrics/exposition.ts';
import { applianceStatus, hubStatusReport } from '../control/status-samples.ts';
import { longestTurnShare } from '../support/loop-turns.ts';

const APPLIANCES = 5000;
const HUB = {
  ...{ id: '4f2a9c', name: 'Cellar hub', version: '1.2.3', address: null, httpPort: 8480, httpsPort: 8443 },
  ...{ caFingerprint: '', configFile: '/etc/latchkey/latchkey.toml', uptime: 12 },
};

it(`the metrics of ${APPLIANCES} appliances are rendered in many turns of the event loop`, async () => {
  const names = Array.from({ length: APPLIANCES }, (_, index) => `appliance-${index}`);
  const appliances = names.map((name) => applianceStatus({ name, state: 'active', expiresIn: 60 }));
  const ids = new Map(names.map((name) => [name, name]));
  const status = hubStatusReport(HUB, appliances);
  const exposition = new Exposition({
    ...{ status: async () => status, connectionIds: () => ids, applianceIds: () => ids },
    ...{ clockOffset: () => null, counters: new Counters(), portalsReached: () => new Map() },
  });
  let parts: readonly Buffer[] = [];
  const share = await longestTurnShare(async () => {
    parts = await exposition.render();
  });
  const text = Buffer.concat(parts).toString();
  expect(text.match(/^latchkey_appliance_state\{.*state="active"\} 1$/gm)).toHaveLength(APPLIANCES);
  expect(share).toBeLessThan(0.5);
});

it('names with quotes and backslashes are escaped in the metrics', async () => {
  const appliances = [applianceStatus({ name: 'a "b" \\ c' })];
  const exposition = new Exposition({
    status: async () => hubStatusReport(HUB, appliances),
    ...{ connectionIds: () => new Map(), applianceIds: () => new Map(), portalsReached: () => new Map() },
    ...{ clockOffset: () => null, counters: new Counters() },
  });
  const text = Buffer.concat(await exposition.render()).toString();
  expect(text).toContain('latchkey_appliance_info{appliance="a \\"b\\" \\\\ c",connection="a \\"b\\" \\\\ c"} 1\n');
});
