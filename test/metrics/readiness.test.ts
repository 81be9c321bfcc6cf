import { expect, it } from 'vitest';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionState } from '../../src/core/connections/connection-status.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { readiness } from '../../src/metrics/readiness.ts';
import { applianceStatus } from '../control/status-samples.ts';

const SINCE = '2031-05-05T06:07:08Z';

function appliance(state: ConnectionState, expiresIn: number | null, code?: ProblemCode): ApplianceStatus {
  const problem = code === undefined ? null : { code, message: 'It was given by a-client-id', since: SINCE };
  const names = { name: 'wallbox', clientId: 'a-client-id', connection: 'login' };
  return applianceStatus({ ...names, state, expiresIn, problem });
}

it.for<[what: string, appliance: ApplianceStatus, ready: boolean]>([
  ['never paired', appliance('unpaired', null), true],
  ['active', appliance('active', 3000), true],
  ['active, its token run out and to be refreshed when asked for', appliance('active', 0), true],
  ['retrying, with one that has run out', appliance('retrying', 0, 'portal_unreachable'), false],
  ['with a token of unknown age after a boot', appliance('retrying', null, 'clock_unknown'), true],
  ['with a token of unknown age that could not be refreshed', appliance('retrying', null, 'portal_deferred'), false],
  ['in need of pairing, with a token that lives', appliance('needs_pairing', 1, 'refused'), true],
  ['in need of pairing, with one that has run out', appliance('needs_pairing', 0, 'refused'), false],
])('an appliance that is %s makes the hub ready or not: %s', ([, one, ready]) => {
  expect(readiness([appliance('active', 3000), one]).ready).toBe(ready);
});

it('readiness names the appliances without a token and the reason, and nothing that only an installer may know', () => {
  const { name, state } = appliance('needs_pairing', null);
  expect(readiness([appliance('active', 1), appliance('needs_pairing', null, 'refused')])).toEqual({
    ready: false,
    appliances: [{ name, connection: 'login', state, problem: 'refused', since: SINCE }],
  });
});
