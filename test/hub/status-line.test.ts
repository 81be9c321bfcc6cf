import { expect, test } from 'vitest';
import type { ApplianceStatus, HubProblem } from '../../src/core/administration.ts';
import { statusLine } from '../../src/hub/status-line.ts';

type Appliance = Parameters<typeof statusLine>[0]['appliances'][number];

const since = '2031-04-05T06:07:08Z';

function one(state: Appliance['state'], code?: NonNullable<ApplianceStatus['problem']>['code'], portal = 'home') {
  return { state, portal, problem: code === undefined ? null : { code, message: 'why', since } };
}

function hub(address: string | null, ...codes: HubProblem['code'][]) {
  return { address, problems: codes.map((code) => ({ code, message: 'why', since })) };
}

test.each<[appliances: Appliance[], hub: ReturnType<typeof hub>, line: string]>([
  [[], hub('10.0.0.1'), 'no appliances yet'],
  [[one('active')], hub('10.0.0.1'), '1 active'],
  [
    [one('needs_pairing', 'refused'), one('active'), one('active'), one('active'), one('unpaired'), one('pairing')],
    hub('10.0.0.1'),
    '3 active, 1 pairing, 1 needs pairing, 1 unpaired',
  ],
  [[one('active')], hub('10.0.0.1', 'not_announced'), "1 active; can't be found by mDNS"],
  [[one('needs_pairing', 'refused'), one('needs_pairing')], hub('10.0.0.1'), '2 need pairing'],
  [[], hub(null), 'no appliances yet; waits for the network (no LAN address)'],
  [
    [one('retrying', 'portal_unreachable'), one('retrying', 'portal_unreachable'), one('retrying', 'clock_unknown')],
    hub('10.0.0.1'),
    '3 retrying; portal home out of reach; clock not confirmed',
  ],
  [
    [one('retrying', 'portal_unreachable', 'away'), one('active', 'portal_deferred')],
    hub('10.0.0.1', 'store_unwritable', 'hub_id_taken', 'store_recovered'),
    "1 active, 1 retrying; can't write its store; another hub on the network has its id; portal away out of reach; portal home asks to wait",
  ],
  [
    [one('retrying', 'misconfigured'), one('retrying', 'answer_lost')],
    hub('10.0.0.1'),
    "2 retrying; portal home refuses the hub's credentials",
  ],
])('%#: %j', (appliances, hub, line) => {
  expect(statusLine({ hub, appliances })).toBe(line);
});
