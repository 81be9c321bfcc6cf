import { describe, expect, test } from 'vitest';
import type { ApplianceStatus } from '../../src/core/administration.ts';
import type { HubCondition } from '../../src/core/health/condition.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import { NOTICE_CODES, type Notice, type NoticeCode } from '../../src/core/reports/notice.ts';
import {
  type ApplianceNoticeInput,
  applianceNotice,
  currentNotice,
  failureDuration,
  type GrantNoticeInput,
  hubNotice,
  isKeptAfterRestart,
  isNotRepeated,
  matchesCondition,
  resolvedMessage,
} from '../../src/core/reports/notice-policy.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { applianceStatus } from '../control/fake-administration.ts';
import { waitingForApproval } from '../support/registration-samples.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PAGE = 'https://192.168.1.7:8443/';
const NOW = Date.parse('2031-04-05T06:10:00Z');
const since = '2031-04-05T06:07:08Z';

const FAILING: GrantNoticeInput = { generation: 3, isFailing: true, remaining: 0, lifetime: HOUR, overdue: null };

function facts(
  state: ApplianceNoticeInput['state'],
  code: ProblemCode | null,
  grant: Partial<GrantNoticeInput> | null = {},
  more: Partial<ApplianceStatus> = {},
): ApplianceNoticeInput {
  const problem = code === null ? null : { code, message: 'Something is wrong', since };
  const status = applianceStatus({ name: 'wallbox', state, problem, ...more });
  const [condition = null] = deriveConditions({ appliances: [status], problems: [], pageUrl: PAGE, now: NOW });
  return {
    ...{ name: 'wallbox', state, condition: condition?.appliance === 'wallbox' ? condition : null },
    grant: grant === null ? null : { ...FAILING, ...grant },
  };
}

function notice(code: NoticeCode, severity: Notice['severity'] = 'warning'): Notice {
  return { code, severity, appliance: 'wallbox', message: 'm', what_to_do: 'w', since: '2030-01-01T00:00:00Z' };
}

describe('when an appliance has a notice', () => {
  test.each<[what: string, facts: ApplianceNoticeInput, lasting: number | null, code: NoticeCode | null]>([
    ['refused', facts('needs_pairing', 'refused'), null, 'pairing_needed'],
    [
      'refused, with the token at hand still good',
      facts('needs_pairing', 'refused', { remaining: HOUR }),
      null,
      'pairing_needed',
    ],
    ['its grant is of another portal, or was damaged', facts('needs_pairing', 'refused', null), null, 'pairing_needed'],
    ['misconfigured', facts('retrying', 'misconfigured', { remaining: HOUR }), 0, 'misconfigured'],
    ['out of reach, just now', facts('retrying', 'portal_unreachable'), 0, null],
    ['out of reach, less than an hour', facts('retrying', 'portal_unreachable'), HOUR - 1, null],
    ['out of reach for an hour, the token ended', facts('retrying', 'portal_unreachable'), HOUR, 'token_ending'],
    [
      '… the token of an age that nobody knows',
      facts('retrying', 'portal_unreachable', { remaining: null }),
      HOUR,
      'token_ending',
    ],
    ['… a tenth left', facts('retrying', 'portal_unreachable', { remaining: HOUR / 10 }), HOUR, 'token_ending'],
    ['… more than a tenth left', facts('retrying', 'portal_unreachable', { remaining: HOUR / 10 + 1 }), HOUR, null],
    [
      'less than a day, the token good',
      facts('retrying', 'portal_rejected', { remaining: DAY, lifetime: DAY }),
      DAY - 1,
      null,
    ],
    [
      'for a day, the token good',
      facts('retrying', 'portal_rejected', { remaining: DAY, lifetime: DAY }),
      DAY,
      'refresh_failing',
    ],
    ['for a day, the token ended', facts('retrying', 'portal_deferred'), DAY, 'token_ending'],
    ['an answer lost, the early retry to come', facts('retrying', 'answer_lost', { remaining: HOUR }), 3000, null],
    ['the store is full for a day: the hub has a notice of that', facts('retrying', 'store_unwritable'), DAY, null],
    ['an answer lost a minute ago', facts('retrying', 'answer_lost', { remaining: HOUR }), MINUTE, 'answer_lost'],
    [
      'an answer lost a day ago',
      facts('retrying', 'answer_lost', { remaining: DAY, lifetime: DAY }),
      DAY,
      'refresh_failing',
    ],
    [
      'its age is not known, and no refresh failed',
      facts('retrying', 'clock_unknown', { remaining: null }),
      null,
      null,
    ],
    ['active', facts('active', null), null, null],
    ['unpaired', facts('unpaired', null, null), null, null],
    ['pairing', facts('pairing', null, null), null, null],
  ])('%s', (_what, stands, lasting, code) => {
    const found = applianceNotice(stands, lasting === null ? null : { duration: lasting, since });
    expect(found?.code ?? null).toBe(code);
  });

  test('one that has introduced itself waits for approval', () => {
    const waiting = waitingForApproval({ since });
    const stands = facts('unpaired', null, null, { waitingForApproval: waiting });
    expect(applianceNotice(stands, null)).toMatchObject({
      ...{ code: 'approval_needed', severity: 'warning', since },
      message: expect.stringMatching(/from 192\.168\.1\.20, with the code KFD-WQX, and waits/),
      what_to_do: expect.stringContaining('--code KFD-WQX"'),
    });
  });

  test.each<[facts: ApplianceNoticeInput, lasting: number]>([
    [facts('needs_pairing', 'refused'), 0],
    [facts('retrying', 'misconfigured'), 0],
    [facts('retrying', 'portal_unreachable'), HOUR],
    [facts('retrying', 'answer_lost', { remaining: HOUR }), MINUTE],
  ])('it names the appliance, what is wrong, and what its condition says is to be done', (stands, lasting) => {
    const found = applianceNotice(stands, { duration: lasting, since });
    const { severity, what_to_do } = stands.condition ?? {};
    expect(found).toMatchObject({ appliance: 'wallbox', severity, what_to_do });
    expect(found?.message).toMatch(/^wallbox .*: something is wrong/);
  });

  test('who must log in is told where', () => {
    const found = applianceNotice(facts('needs_pairing', 'refused'), null);
    expect(found?.what_to_do).toContain('https://192.168.1.7:8443/appliances/wallbox or run "latchkey pair wallbox"');
  });
});

test.each([
  [MINUTE, null, MINUTE],
  [9 * MINUTE, 30 * DAY, 9 * MINUTE],
  [10 * MINUTE, 30 * DAY, 30 * DAY],
  [3 * HOUR, HOUR, 3 * HOUR],
  [3 * HOUR, null, 3 * HOUR],
])('seen to fail for %i ms, overdue by %s: it counts as %i', (observed, overdue, counted) => {
  expect(failureDuration(observed, overdue)).toBe(counted);
});

describe('what stands, where a notice stood before', () => {
  const stood = (code: NoticeCode, generation: number | null = 3) => ({ notice: notice(code), generation });
  const failing = (code: ProblemCode = 'portal_unreachable') => facts('retrying', code);
  const idle = facts('active', null, { isFailing: false, remaining: HOUR });
  const dead = facts('retrying', 'portal_unreachable', { isFailing: false, remaining: 0 });

  test.each<
    [
      what: string,
      before: ReturnType<typeof stood>,
      now: ApplianceNoticeInput | undefined,
      fresh: NoticeCode | null,
      stands: NoticeCode | null,
    ]
  >([
    ['new tokens are there', stood('token_ending', 2), idle, null, null],
    ['the hub was started, nothing is tried', stood('token_ending'), idle, null, 'token_ending'],
    ['the first try has failed', stood('refresh_failing'), failing(), null, 'refresh_failing'],
    ['the portal answers otherwise', stood('misconfigured'), failing('portal_deferred'), null, 'misconfigured'],
    [
      'the lesser one does not take its place',
      stood('token_ending'),
      failing('answer_lost'),
      'answer_lost',
      'token_ending',
    ],
    ['the greater one does', stood('refresh_failing'), failing(), 'token_ending', 'token_ending'],
    ['an error does', stood('token_ending'), failing('misconfigured'), 'misconfigured', 'misconfigured'],
    [
      'what has stood for an hour takes the place of misconfigured',
      stood('misconfigured'),
      failing(),
      'token_ending',
      'token_ending',
    ],
    [
      'refused takes the place of all',
      stood('token_ending'),
      facts('needs_pairing', 'refused'),
      'pairing_needed',
      'pairing_needed',
    ],
    ['paired again', stood('pairing_needed', 2), idle, null, null],
    ['rejected until a person comes, and the hub was started', stood('pairing_needed'), dead, null, 'pairing_needed'],
    ['its grant is back at work, and good', stood('pairing_needed'), idle, null, null],
    ['a pairing is open', stood('pairing_needed', null), facts('pairing', null, null), null, 'pairing_needed'],
    ['unpaired', stood('pairing_needed'), facts('unpaired', null, null), null, null],
    ['removed', stood('token_ending'), undefined, null, null],
    ['approved', stood('approval_needed', null), facts('unpaired', null, null), null, null],
  ])('%s', (_what, was, now, fresh, stands) => {
    const severity = fresh === 'misconfigured' || fresh === 'pairing_needed' ? 'error' : 'warning';
    const found = currentNotice(was, { facts: now, notice: fresh && notice(fresh, severity) });
    expect(found?.code ?? null).toBe(stands);
  });

  test('the same one keeps the time when it began', () => {
    const later = { ...notice('token_ending'), since, message: 'new' };
    const found = currentNotice(stood('token_ending'), { facts: failing(), notice: later });
    expect(found).toEqual({ ...later, since: '2030-01-01T00:00:00Z' });
  });

  test('it says what is known now, where that is as grave; where it is not, it is no news any more', () => {
    const now = failing('portal_deferred');
    expect(currentNotice(stood('token_ending'), { facts: now, notice: null })).toMatchObject({
      ...{ code: 'token_ending', since: '2030-01-01T00:00:00Z', what_to_do: now.condition?.what_to_do },
      message: expect.stringMatching(/^wallbox waits for a new token: something is wrong; .* since 2030/),
    });
    expect(matchesCondition(notice('token_ending'), now.condition)).toBe(true);
    expect(matchesCondition(notice('token_ending'), idle.condition)).toBe(false);
    expect(matchesCondition(notice('misconfigured', 'error'), now.condition)).toBe(false);
  });
});

function ofHub(fact: HubConditionInput): HubCondition {
  const [condition] = deriveConditions({ appliances: [], problems: [fact], pageUrl: PAGE, now: NOW });
  if (condition?.appliance !== null) throw new Error('it is not of the hub');
  return condition;
}

describe('the hub as a whole', () => {
  test.each([
    ['not_announced', 10 * MINUTE, 'warning'],
    ['hub_id_taken', 0, 'error'],
    ['hub_name_claimed', 10 * MINUTE, 'warning'],
    ['store_changed', 0, 'error'],
    ['store_recovered', 0, 'warning'],
    ['store_unwritable', 0, 'error'],
  ] as const)('%s is a notice after %i ms', (code, after, severity) => {
    const problem = ofHub({ code, message: 'Why', since });
    expect(hubNotice(problem, after)).toMatchObject({ code, severity, appliance: null, message: 'Why', since });
    if (after > 0) expect(hubNotice(problem, after - 1)).toBeNull();
    expect(isKeptAfterRestart(code, after)).toBe(false);
    if (after > 0) expect(isKeptAfterRestart(code, after - 1)).toBe(true);
  });
});

test('wrong setup codes are a warning at once, which a restart does not end', () => {
  const fact = ofHub({ code: 'wrong_setup_codes', message: 'Why', since });
  expect(hubNotice(fact, 0)).toMatchObject({ code: fact.code, severity: 'warning', appliance: null });
  expect(isKeptAfterRestart('wrong_setup_codes', 2 * HOUR - 1)).toBe(true);
  expect(isKeptAfterRestart('wrong_setup_codes', 2 * HOUR)).toBe(false);
});

test('only what is no emergency is told once', () => {
  expect(NOTICE_CODES.filter(isNotRepeated)).toEqual(['answer_lost', 'store_recovered', 'wrong_setup_codes']);
});

test.each<[facts: ApplianceNoticeInput | undefined, end: string]>([
  [facts('active', null), 'wallbox is connected again'],
  [facts('unpaired', null, null), 'wallbox needs nothing any more'],
  [undefined, 'wallbox was removed from the hub'],
])('what is over is told in words', (now, end) => {
  expect(resolvedMessage(notice('pairing_needed'), now)).toBe(end);
  expect(resolvedMessage({ ...notice('not_announced'), appliance: null }, undefined)).toBe('This is over: m');
});
