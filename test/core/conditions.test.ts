import { expect, test } from 'vitest';
import type { ConnectionStatus } from '../../src/core/connections/connection-status.ts';
import { groupByConnection } from '../../src/core/health/condition.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import { explainPairingFailure } from '../../src/core/reports/pairing-failure.ts';
import type { Problem } from '../../src/core/reports/problem.ts';
import { applianceStatus, connectionStatus, named } from '../control/status-samples.ts';
import { waitingForApproval } from '../support/registration-samples.ts';

const NOW = Date.parse('2031-04-05T06:10:00Z');
const since = '2031-04-05T06:07:08Z';
const problemOf = (code: Problem['code']) => ({ code, message: 'Something is wrong', since });

/** The conditions of connections with these statuses. */
function conditionsOf(
  connections: readonly ConnectionStatus[],
  appliances: Parameters<typeof deriveConditions>[0]['appliances'] = [],
  problems: readonly HubConditionInput[] = [],
) {
  return deriveConditions({ connections, appliances, problems, pageUrl: 'https://hub/', now: NOW });
}

test('the most severe conditions come first, and within a severity those of the hub, then those of connections', () => {
  const found = conditionsOf(
    [
      connectionStatus({ name: 'new' }),
      connectionStatus({ name: 'slow', state: 'retrying', problem: problemOf('portal_unreachable') }),
      connectionStatus({ name: 'ended', state: 'needs_pairing', problem: problemOf('refused') }),
    ],
    [applianceStatus({ name: 'heater', withoutCredentials: true })],
    [
      { code: 'not_announced', message: 'Why', since },
      { code: 'store_unwritable', message: 'Why', since },
    ],
  );
  expect(found.map(({ severity, code }) => [severity, code])).toEqual([
    ['error', 'store_unwritable'],
    ['error', 'refused'],
    ['warning', 'not_announced'],
    ['warning', 'portal_unreachable'],
    ['warning', 'without_credentials'],
    ['info', 'not_paired'],
  ]);
});

test.each([
  [null, null],
  [0, null],
  [0.9, null],
  [1, '2031-04-05T06:10:01Z'],
  [3600, '2031-04-05T07:10:00Z'],
])('a problem says until when appliances have a token, if they have one: expires in %s s', (expiresIn, until) => {
  const status = connectionStatus({
    name: 'wallbox',
    state: 'retrying',
    expiresIn,
    problem: problemOf('portal_unreachable'),
  });
  expect(conditionsOf([status])).toMatchObject([{ code: 'portal_unreachable', until }]);
});

test('the condition of a shared connection names the appliances that it concerns', () => {
  const messageFor = (users: readonly string[], own?: true) =>
    conditionsOf([connectionStatus({ name: 'wallbox', users: named(...users), ...(own && { own }) })])[0]?.message;
  expect(messageFor([])).toBe('The login wallbox is not paired yet');
  expect(messageFor(['wallbox'], true)).toBe('wallbox is not paired yet');
  expect(messageFor(['heater'])).toBe('The login wallbox is not paired yet; heater is affected');
  expect(messageFor(['heater', 'fan'])).toBe('The login wallbox is not paired yet; heater and fan are affected');
  expect(messageFor(['heater', 'fan', 'pump'])).toBe(
    'The login wallbox is not paired yet; heater, fan and pump are affected',
  );
});

test('a connection has no condition while all of its appliances wait for approval', () => {
  const connection = connectionStatus({ name: 'shared', users: named('heater', 'fan') });
  const approved = (name: string) => applianceStatus({ name, connection: 'shared' });
  const waiting = (name: string) => ({ ...approved(name), waitingForApproval: waitingForApproval({ since }) });
  const codes = (...appliances: Parameters<typeof conditionsOf>[1] & object) =>
    conditionsOf([connection], appliances).map(({ code }) => code);
  expect(codes(waiting('heater'), waiting('fan'))).toEqual(['approval_needed', 'approval_needed']);
  expect(codes(waiting('heater'), approved('fan'))).toEqual(['approval_needed', 'not_paired']);
  expect(codes(approved('heater'), approved('fan'))).toEqual(['not_paired']);
});

test('an appliance that registered itself is shown with its address', () => {
  const waiting = waitingForApproval({ since, address: '192.168.1.20' });
  const [condition] = conditionsOf([], [applianceStatus({ name: 'heater', waitingForApproval: waiting })]);
  expect(condition?.message).toMatch(/^heater has registered itself from 192\.168\.1\.20 with the code /);
});

test('a connection whose portal has changed may be one whose change was not intended', () => {
  const adviceFor = (problem: ConnectionStatus['problem']) =>
    conditionsOf([connectionStatus({ name: 'wallbox', state: 'needs_pairing', problem })])[0]?.what_to_do;
  expect(adviceFor({ ...problemOf('refused'), condition: 'portal_changed' })).toMatch(
    /^If this change was not intended, revert portals\.home /,
  );
  expect(adviceFor(problemOf('refused'))).toMatch(/^Log in again to connect wallbox: /);
});

test('a login that ends soon is a warning, which says why, until it has ended', () => {
  const status = { name: 'wallbox', state: 'active', loginEnds: '2031-04-09', loginEndingSince: since } as const;
  const of = (changes: Partial<ConnectionStatus>) => conditionsOf([connectionStatus({ ...status, ...changes })]);
  expect(of({})).toMatchObject([
    {
      code: 'login_ending',
      severity: 'warning',
      since,
      message: 'The login wallbox must be connected again before 2031-04-09, when its login ends',
      what_to_do: expect.stringMatching(/^Log in again before then: /),
    },
  ]);
  expect(of({ withoutRefreshToken: true })).toMatchObject([
    {
      message: expect.stringMatching(/when its access token ends; the portal gave no refresh token/),
      what_to_do: expect.stringMatching(/^Add offline_access to the scope of wallbox, then log in again/),
    },
  ]);
  expect(of({ state: 'needs_pairing' })).toEqual([]);
});

test('a pairing that failed is shown with its cause and an advice that begins with a capital letter', () => {
  const pairingFailed = { reason: 'refused_by_user', at: since, message: '' } as const;
  const [condition, ...more] = conditionsOf([connectionStatus({ name: 'wallbox', pairingFailed })]);
  expect(condition).toMatchObject({ code: 'pairing_failed', severity: 'info', since });
  const { advice } = explainPairingFailure('refused_by_user', 'wallbox', { portal: 'home' });
  expect(condition?.what_to_do).toBe(`${advice.charAt(0).toUpperCase()}${advice.slice(1)}`);
  expect(condition?.what_to_do).toMatch(/^[A-Z][a-z]/);
  expect(more).toEqual([]);
});

test('the conditions of connections are grouped by their names, without those of appliances', () => {
  const all = conditionsOf(
    [connectionStatus({ name: 'b' }), connectionStatus({ name: 'a', users: named('heater') })],
    [applianceStatus({ name: 'heater', connection: 'a', withoutCredentials: true })],
  );
  expect(all).toHaveLength(3);
  const groups = [...groupByConnection(all)].map(([name, found]) => [name, found.map(({ code }) => code)]);
  expect(groups).toEqual([
    ['b', ['not_paired']],
    ['a', ['not_paired']],
  ]);
});
