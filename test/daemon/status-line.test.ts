import { expect, test } from 'vitest';
import type { ApplianceState, ApplianceStatus } from '../../src/core/administration.ts';
import type { HubConditionCode } from '../../src/core/health/condition.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { statusLine } from '../../src/daemon/status-line.ts';
import { applianceStatus, PAGE } from '../control/fake-administration.ts';
import { waitingForApproval } from '../support/registration-samples.ts';

const since = '2031-04-05T06:07:08Z';

function one(state: ApplianceState, code?: ProblemCode, portal = 'home', name = 'wallbox'): ApplianceStatus {
  const problem = code === undefined ? null : { code, message: 'why', since };
  return applianceStatus({ name, state, portal, problem });
}

/** One that waits for a person: to log in again, or to approve it. */
function needy(name: string, waits = false): ApplianceStatus {
  const approval = { waitingForApproval: waitingForApproval() };
  return waits ? applianceStatus({ name, ...approval }) : one('needs_pairing', 'refused', 'home', name);
}

function hub(address: string | null, ...codes: HubConditionCode[]) {
  return { address, problems: codes.map((code) => ({ code, message: 'why', since })) };
}

test.each<[appliances: ApplianceStatus[], hub: ReturnType<typeof hub>, line: string]>([
  [[], hub('10.0.0.1'), 'no appliances yet'],
  [[one('active')], hub('10.0.0.1'), '1 active'],
  [
    [
      one('needs_pairing', 'refused', 'home', 'heater'),
      ...['a', 'b', 'c'].map((name) => one('active', undefined, 'home', name)),
      one('unpaired', undefined, 'home', 'd'),
      one('pairing', undefined, 'home', 'e'),
    ],
    hub('10.0.0.1'),
    '3 active, 1 pairing, 1 needs pairing (heater), 1 unpaired',
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
    [
      one('retrying', 'portal_unreachable', 'home', 'a'),
      one('retrying', 'portal_unreachable', 'home', 'b'),
      one('retrying', 'clock_unknown', 'home', 'c'),
    ],
    hub('10.0.0.1'),
    '3 retrying; portal home not reached; clock not confirmed',
  ],
  [
    [one('retrying', 'portal_unreachable', 'away'), one('retrying', 'portal_deferred', 'home', 'meter')],
    hub('10.0.0.1', 'hub_id_taken', 'store_recovered'),
    '2 retrying; another hub on the network has its id; its store was damaged and repaired; portal away not reached; portal home asks to wait',
  ],
  [[one('active')], hub('10.0.0.1', 'hub_name_claimed'), '1 active; another device on the network claims its name'],
  [
    [one('retrying', 'misconfigured'), one('retrying', 'answer_lost', 'home', 'meter')],
    hub('10.0.0.1'),
    "1 retrying, 1 needs attention (wallbox); portal home refuses the hub's credentials",
  ],
  [
    [one('retrying', 'store_unwritable'), one('active', undefined, 'home', 'meter')],
    hub('10.0.0.1', 'store_unwritable'),
    "1 active, 1 needs attention (wallbox); can't write its store",
  ],
])('case %#: the status line sums up the appliances %j', (appliances, { address, problems }, line) => {
  const conditions = deriveConditions({ appliances, problems, pageUrl: PAGE, now: Date.parse(since) });
  expect(statusLine({ hub: { address }, appliances, conditions })).toBe(line);
});
