import { expect, test } from 'vitest';
import type { ApplianceStatus, HubProblem } from '../../src/core/administration.ts';
import { statusLine } from '../../src/daemon/status-line.ts';

type Appliance = Parameters<typeof statusLine>[0]['appliances'][number];

const since = '2031-04-05T06:07:08Z';

function one(
  state: Appliance['state'],
  code?: NonNullable<ApplianceStatus['problem']>['code'],
  portal = 'home',
  name = 'wallbox',
) {
  return { name, state, portal, problem: code === undefined ? null : { code, message: 'why', since } };
}

/** One that waits for a person: to log in again, or to approve it. */
function needy(name: string, waits = false) {
  const approval = waits ? { waitingForApproval: { since, softwareId: null } } : {};
  return { ...one(waits ? 'unpaired' : 'needs_pairing', undefined, 'home', name), ...approval };
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
    '3 active, 1 pairing, 1 needs pairing (wallbox), 1 unpaired',
  ],
  [[one('active')], hub('10.0.0.1', 'not_announced'), "1 active; can't be found by mDNS"],
  [[needy('heater'), needy('meter'), one('active')], hub('10.0.0.1'), '1 active, 2 need pairing (heater, meter)'],
  [['a', 'b', 'c', 'd', 'e'].map((name) => needy(name)), hub('10.0.0.1'), '5 need pairing (a, b, c and 2 more)'],
  [
    [needy('fridge', true), one('unpaired'), needy('meter', true)],
    hub('10.0.0.1'),
    '2 wait for approval (fridge, meter), 1 unpaired',
  ],
  [[needy('fridge', true)], hub('10.0.0.1'), '1 waits for approval (fridge)'],
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
  [[one('active')], hub('10.0.0.1', 'hub_name_claimed'), '1 active; another device on the network claims its name'],
  [
    [one('retrying', 'misconfigured'), one('retrying', 'answer_lost')],
    hub('10.0.0.1'),
    "2 retrying; portal home refuses the hub's credentials",
  ],
])('%#: %j', (appliances, hub, line) => {
  expect(statusLine({ hub, appliances })).toBe(line);
});
