import { expect, test } from 'vitest';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionState } from '../../src/core/connections/connection-status.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import type { HubConditionCode } from '../../src/core/health/hub-conditions.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { statusLine } from '../../src/daemon/status-line.ts';
import { applianceStatus, connectionsOf, PAGE } from '../control/status-samples.ts';
import { waitingForApproval } from '../support/registration-samples.ts';

const since = '2031-04-05T06:07:08Z';

function applianceIn(state: ConnectionState, code?: ProblemCode, portal = 'home', name = 'wallbox'): ApplianceStatus {
  const problem = code === undefined ? null : { code, message: 'why', since };
  return applianceStatus({ name, state, portal, problem });
}

/** One of the appliances that share a connection. */
function shares(state: ConnectionState, code: ProblemCode, name: string): ApplianceStatus {
  return { ...applianceIn(state, code, 'home', name), connection: 'heating' };
}

/** An appliance that waits for a person: to log in again, or to approve it. */
function needsPerson(name: string, waits = false): ApplianceStatus {
  const approval = { waitingForApproval: waitingForApproval() };
  return waits ? applianceStatus({ name, ...approval }) : applianceIn('needs_pairing', 'refused', 'home', name);
}

function hub(address: string | null, ...codes: HubConditionCode[]) {
  return { address, problems: codes.map((code) => ({ code, message: 'why', since })) };
}

test.each<[appliances: ApplianceStatus[], hub: ReturnType<typeof hub>, line: string]>([
  [[], hub('10.0.0.1'), 'no appliances yet'],
  [
    [
      applianceIn('needs_pairing', 'refused', 'home', 'heater'),
      ...['a', 'b', 'c'].map((name) => applianceIn('active', undefined, 'home', name)),
      applianceIn('unpaired', undefined, 'home', 'd'),
      applianceIn('pairing', undefined, 'home', 'e'),
    ],
    hub('10.0.0.1'),
    '3 active, 1 pairing, 1 needs pairing (heater), 1 unpaired',
  ],
  [[applianceIn('active')], hub('10.0.0.1', 'not_announced'), "1 active; can't be found by mDNS"],
  [['a', 'b', 'c', 'd', 'e'].map((name) => needsPerson(name)), hub('10.0.0.1'), '5 need pairing (a, b, c and 2 more)'],
  [[], hub(null), 'no appliances yet; waiting for the network (no LAN address)'],
  [
    [
      applianceIn('retrying', 'portal_unreachable', 'home', 'a'),
      applianceIn('retrying', 'portal_unreachable', 'home', 'b'),
      applianceIn('retrying', 'clock_unknown', 'home', 'c'),
    ],
    hub('10.0.0.1'),
    '3 retrying; portal home unreachable; clock not confirmed',
  ],
  [
    [
      applianceIn('retrying', 'portal_unreachable', 'away'),
      applianceIn('retrying', 'portal_deferred', 'home', 'meter'),
    ],
    hub('10.0.0.1', 'hub_id_taken', 'store_recovered'),
    '2 retrying; another hub on the network has its id; its store was damaged or missing, and rebuilt; portal away unreachable; portal home asked the hub to wait',
  ],
  [
    [applianceIn('retrying', 'misconfigured'), applianceIn('retrying', 'answer_lost', 'home', 'meter')],
    hub('10.0.0.1'),
    "1 retrying, 1 needs attention (wallbox); portal home refuses the hub's credentials",
  ],
  [
    [shares('needs_pairing', 'refused', 'thermostat'), shares('needs_pairing', 'refused', 'dashboard')],
    hub('10.0.0.1'),
    '2 need pairing (thermostat, dashboard)',
  ],
])('case %#: the status line sums up the appliances %j', (appliances, { address, problems }, line) => {
  const conditions = deriveConditions({
    connections: connectionsOf(appliances),
    appliances,
    problems,
    pageUrl: PAGE,
    now: Date.parse(since),
  });
  expect(statusLine({ hub: { address }, appliances, conditions })).toBe(line);
});

test('the status line says that a person is needed if a login ends soon', () => {
  const wallbox = applianceIn('active');
  const [connection] = connectionsOf([wallbox]);
  const ending = { loginEnds: '2031-04-07T00:00:00Z', loginEndingSince: since };
  const conditions = deriveConditions({
    connections: connection === undefined ? [] : [{ ...connection, ...ending }],
    appliances: [wallbox],
    problems: [],
    pageUrl: PAGE,
    now: Date.parse(since),
  });
  expect(statusLine({ hub: { address: '10.0.0.1' }, appliances: [wallbox], conditions })).toBe(
    '1 needs attention (wallbox)',
  );
});
