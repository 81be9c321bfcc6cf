import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import { APPLIANCE_CONDITIONS } from '../../src/core/health/appliance-conditions.ts';
import { concernsHub, type HubCondition } from '../../src/core/health/condition.ts';
import { CONNECTION_CONDITIONS } from '../../src/core/health/connection-conditions.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import { HUB_CONDITION_CODES, HUB_CONDITIONS } from '../../src/core/health/hub-conditions.ts';
import { type Notice, type NoticeCode, SUBJECT_NOTICES } from '../../src/core/health/notice.ts';
import {
  currentNotice,
  failureDuration,
  type GrantNoticeInput,
  hubNotice,
  isKeptAfterRestart,
  isNotRepeated,
  matchesCondition,
  resolvedMessage,
  type SubjectNoticeInput,
  subjectNotice,
} from '../../src/core/health/notice-policy.ts';
import { keysOf } from '../../src/core/keys.ts';
import { uncapitalize } from '../../src/core/letter-case.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { applianceStatus, connectionsOf } from '../control/status-samples.ts';
import { root } from '../project/checkout.ts';
import { waitingForApproval } from '../support/registration-samples.ts';
import { DAY, HOUR, MINUTE } from './samples.ts';

const PAGE = 'https://192.168.1.7:8443/';
const NOW = Date.parse('2031-04-05T06:10:00Z');
const since = '2031-04-05T06:07:08Z';

const FAILING: GrantNoticeInput = { generation: 3, isFailing: true, remaining: 0, lifetime: HOUR, overdue: null };

function facts(
  state: SubjectNoticeInput['state'],
  code: ProblemCode | null,
  grant: Partial<GrantNoticeInput> | null = {},
  more: Partial<ApplianceStatus> = {},
): SubjectNoticeInput {
  const problem = code === null ? null : { code, message: 'Something is wrong', since };
  const status = applianceStatus({ name: 'wallbox', state, problem, ...more });
  const [condition = null] = deriveConditions({
    connections: connectionsOf([status]),
    appliances: [status],
    problems: [],
    pageUrl: PAGE,
    now: NOW,
  });
  return {
    key: 'appliance wallbox',
    title: 'wallbox',
    state,
    condition: condition === null || concernsHub(condition) ? null : condition,
    grant: grant === null ? null : { ...FAILING, ...grant },
  };
}

function notice(code: NoticeCode, severity: Notice['severity'] = 'warning'): Notice {
  const subject = { connection: 'wallbox', appliance: 'wallbox', appliances: ['wallbox'] };
  return { code, severity, ...subject, message: 'm', what_to_do: 'w', since: '2030-01-01T00:00:00Z' };
}

describe('notice of an appliance', () => {
  test.each<[what: string, facts: SubjectNoticeInput, lasting: number | null, code: NoticeCode | null]>([
    ['refused', facts('needs_pairing', 'refused'), null, 'pairing_needed'],
    ['suspended or damaged grant', facts('needs_pairing', 'refused', null), null, 'pairing_needed'],
    ['misconfigured', facts('retrying', 'misconfigured', { remaining: HOUR }), 0, 'misconfigured'],
    ['unreachable, just now', facts('retrying', 'portal_unreachable'), 0, null],
    ['unreachable for less than an hour', facts('retrying', 'portal_unreachable'), HOUR - 1, null],
    ['unreachable for an hour, access token expired', facts('retrying', 'portal_unreachable'), HOUR, 'token_ending'],
    [
      'unreachable for an hour, access token of unknown age',
      facts('retrying', 'portal_unreachable', { remaining: null }),
      HOUR,
      'token_ending',
    ],
    [
      'unreachable for an hour, a tenth of the lifetime left',
      facts('retrying', 'portal_unreachable', { remaining: HOUR / 10 }),
      HOUR,
      'token_ending',
    ],
    [
      'unreachable for an hour, more than a tenth of the lifetime left',
      facts('retrying', 'portal_unreachable', { remaining: HOUR / 10 + 1 }),
      HOUR,
      null,
    ],
    [
      'rejected for less than a day, access token valid',
      facts('retrying', 'portal_rejected', { remaining: DAY, lifetime: DAY }),
      DAY - 1,
      null,
    ],
    [
      'rejected for a day, access token valid',
      facts('retrying', 'portal_rejected', { remaining: DAY, lifetime: DAY }),
      DAY,
      'refresh_failing',
    ],
    ['answer just lost, early retry still to come', facts('retrying', 'answer_lost', { remaining: HOUR }), 3000, null],
    ['store unwritable for a day, which is a notice of the hub', facts('retrying', 'store_unwritable'), DAY, null],
    ['answer lost a minute ago', facts('retrying', 'answer_lost', { remaining: HOUR }), MINUTE, 'answer_lost'],
    [
      'answer lost a day ago',
      facts('retrying', 'answer_lost', { remaining: DAY, lifetime: DAY }),
      DAY,
      'refresh_failing',
    ],
    [
      'access token of unknown age, no failed refresh',
      facts('retrying', 'clock_unknown', { remaining: null }),
      null,
      null,
    ],
    ['active', facts('active', null), null, null],
    ['unpaired', facts('unpaired', null, null), null, null],
    ['pairing', facts('pairing', null, null), null, null],
  ])('an appliance has a notice depending on its problem and its duration: %s', (_what, input, duration, code) => {
    const found = subjectNotice(input, duration === null ? null : { duration: duration, since });
    expect(found?.code ?? null).toBe(code);
  });

  test('a registered appliance that waits for approval has a notice with its address and comparison code', () => {
    const waiting = waitingForApproval({ since });
    const input = facts('unpaired', null, null, { waitingForApproval: waiting });
    expect(subjectNotice(input, null)).toMatchObject({
      code: 'approval_needed',
      severity: 'warning',
      since,
      message: expect.stringMatching(/from 192\.168\.1\.20 with the code KFD-WQX, and waits/),
      what_to_do: expect.stringContaining('--code KFD-WQX"'),
    });
  });

  test.each<[facts: SubjectNoticeInput, lasting: number]>([
    [facts('needs_pairing', 'refused'), 0],
    [facts('retrying', 'misconfigured'), 0],
    [facts('retrying', 'portal_unreachable'), HOUR],
    [facts('retrying', 'answer_lost', { remaining: HOUR }), MINUTE],
  ])('a notice names the appliance, its problem and the advice of its condition', (input, duration) => {
    const found = subjectNotice(input, { duration: duration, since });
    const { severity, what_to_do } = input.condition ?? {};
    expect(found).toMatchObject({ appliance: 'wallbox', severity, what_to_do });
    expect(found?.message).toMatch(/^wallbox .*: something is wrong/);
  });

  test.each<[remaining: number | null, words: string]>([
    [0, ', and the current token has expired'],
    [1, ', and the current token expires soon'],
    [null, ', and the current token expires soon'],
  ])('the notice of a token that ends says whether it has expired: %s ms left', (remaining, words) => {
    const found = subjectNotice(facts('retrying', 'portal_unreachable', { remaining }), { duration: HOUR, since });
    expect(found?.message.endsWith(`; it has had no new token since ${since}${words}`)).toBe(true);
    const valid = facts('retrying', 'portal_rejected', { remaining: DAY, lifetime: DAY });
    expect(subjectNotice(valid, { duration: DAY, since })?.message).toMatch(/; it has had no new token since [^,]*$/);
  });
});

test.each([
  [MINUTE, null, MINUTE],
  [9 * MINUTE, 30 * DAY, 9 * MINUTE],
  [10 * MINUTE, 30 * DAY, 30 * DAY],
  [3 * HOUR, HOUR, 3 * HOUR],
  [3 * HOUR, null, 3 * HOUR],
])('a failure observed for %i ms with a refresh overdue by %s counts as lasting %i', (observed, overdue, counted) => {
  expect(failureDuration(observed, overdue)).toBe(counted);
});

describe('current notice after an earlier one', () => {
  const earlierNotice = (code: NoticeCode, generation: number | null = 3) => ({ notice: notice(code), generation });
  const failing = (code: ProblemCode = 'portal_unreachable') => facts('retrying', code);
  const idle = facts('active', null, { isFailing: false, remaining: HOUR });
  const dead = facts('retrying', 'portal_unreachable', { isFailing: false, remaining: 0 });

  test.each<
    [
      what: string,
      before: ReturnType<typeof earlierNotice>,
      now: SubjectNoticeInput | undefined,
      fresh: NoticeCode | null,
      stands: NoticeCode | null,
    ]
  >([
    ['new tokens resolve it', earlierNotice('token_ending', 2), idle, null, null],
    ['it stays after a restart without an attempt', earlierNotice('token_ending'), idle, null, 'token_ending'],
    ['it stays after the first failed attempt', earlierNotice('refresh_failing'), failing(), null, 'refresh_failing'],
    [
      'a lesser notice does not replace it',
      earlierNotice('token_ending'),
      failing('answer_lost'),
      'answer_lost',
      'token_ending',
    ],
    ['a graver notice replaces it', earlierNotice('refresh_failing'), failing(), 'token_ending', 'token_ending'],
    [
      'an error replaces a warning',
      earlierNotice('token_ending'),
      failing('misconfigured'),
      'misconfigured',
      'misconfigured',
    ],
    [
      'a refusal replaces any other',
      earlierNotice('token_ending'),
      facts('needs_pairing', 'refused'),
      'pairing_needed',
      'pairing_needed',
    ],
    ['a new pairing resolves it', earlierNotice('pairing_needed', 2), idle, null, null],
    ['a rejected grant keeps it after a restart', earlierNotice('pairing_needed'), dead, null, 'pairing_needed'],
    ['a good grant resolves it', earlierNotice('pairing_needed'), idle, null, null],
    [
      'it stays during an open pairing',
      earlierNotice('pairing_needed', null),
      facts('pairing', null, null),
      null,
      'pairing_needed',
    ],
    ['unpaired', earlierNotice('pairing_needed'), facts('unpaired', null, null), null, null],
    ['the removal of the appliance resolves it', earlierNotice('token_ending'), undefined, null, null],
    ['approval resolves it', earlierNotice('approval_needed', null), facts('unpaired', null, null), null, null],
  ])(
    'the current notice follows from the earlier one and the new state: %s',
    (_what, earlier, now, fresh, expected) => {
      const severity = fresh === 'misconfigured' || fresh === 'pairing_needed' ? 'error' : 'warning';
      const found = currentNotice(earlier, { facts: now, notice: fresh && notice(fresh, severity) });
      expect(found?.code ?? null).toBe(expected);
    },
  );

  test('a notice of the same code keeps the time when it began', () => {
    const later = { ...notice('token_ending'), since, message: 'new' };
    const found = currentNotice(earlierNotice('token_ending'), { facts: failing(), notice: later });
    expect(found).toEqual({ ...later, since: '2030-01-01T00:00:00Z' });
  });

  test('a notice is updated with the current problem, and does not match a condition of lesser severity', () => {
    const now = failing('portal_deferred');
    expect(currentNotice(earlierNotice('token_ending'), { facts: now, notice: null })).toMatchObject({
      code: 'token_ending',
      since: '2030-01-01T00:00:00Z',
      what_to_do: now.condition?.what_to_do,
      message: expect.stringMatching(/^wallbox waits for a new token: something is wrong; .* since 2030/),
    });
    expect(matchesCondition(notice('token_ending'), now.condition)).toBe(true);
    expect(matchesCondition(notice('token_ending'), idle.condition)).toBe(false);
    expect(matchesCondition(notice('misconfigured', 'error'), now.condition)).toBe(false);
  });
});

function ofHub(fact: HubConditionInput): HubCondition {
  const [condition] = deriveConditions({ connections: [], appliances: [], problems: [fact], pageUrl: PAGE, now: NOW });
  if (condition === undefined || !concernsHub(condition)) throw new Error('it is not of the hub');
  return condition;
}

test.each([
  ['not_announced', 10 * MINUTE, 10 * MINUTE, 'warning'],
  ['hub_id_taken', 0, 0, 'error'],
  ['portal_moved', 0, 0, 'error'],
  ['hub_name_claimed', 10 * MINUTE, 10 * MINUTE, 'warning'],
  ['store_changed', 0, 0, 'error'],
  ['store_recovered', 0, 0, 'warning'],
  ['store_unwritable', 0, 0, 'error'],
  ['store_volatile', 0, 0, 'warning'],
  ['store_slow', 10 * MINUTE, 2 * HOUR, 'warning'],
  ['certificate_expired', 0, 2 * HOUR, 'error'],
  ['certificate_expiring', 0, 2 * HOUR, 'warning'],
  ['wrong_setup_codes', 0, 2 * HOUR, 'warning'],
] as const)(
  'the hub condition %s becomes a notice after %i ms, and a restart resolves it after %i ms',
  (code, after, kept, severity) => {
    const problem = ofHub({ code, message: 'Why', since });
    expect(hubNotice(problem, after)).toMatchObject({ code, severity, appliance: null, message: 'Why', since });
    if (after > 0) expect(hubNotice(problem, after - 1)).toBeNull();
    expect(isKeptAfterRestart(code, kept)).toBe(false);
    if (kept > 0) expect(isKeptAfterRestart(code, kept - 1)).toBe(true);
  },
);

const PAGE_OF_NOTICES = join(root, 'docs/notices.md');
const TABLE = /^\| notice \|.*?\n\n/ms;

test('docs/notices.md lists every notice (./scripts/test --update core/notices writes it)', async () => {
  const atOnce = Object.values({ ...CONNECTION_CONDITIONS, ...APPLIANCE_CONDITIONS });
  const ofSubjects = keysOf(SUBJECT_NOTICES).map((code) => {
    const { meaning, advice } = SUBJECT_NOTICES[code];
    return [code, atOnce.find(({ notice: sent }) => sent === code)?.severity ?? 'warning', meaning, advice] as const;
  });
  const ofHub = HUB_CONDITION_CODES.map((code) => {
    const { severity, delay = 0, meaning, advice } = HUB_CONDITIONS[code];
    return [
      code,
      severity,
      `${delay === 0 ? 'at once' : `after ${delay / MINUTE} minutes`}: ${meaning}`,
      advice,
    ] as const;
  });
  const rows = [
    ['notice', 'severity', 'when', 'what to do'],
    ['---', '---', '---', '---'],
    ...[...ofSubjects, ...ofHub].map(([code, severity, meaning, advice]) => {
      const repeated = isNotRepeated(code) ? '. It is not repeated' : '';
      return [`\`${code}\``, severity, `${meaning}${repeated}`, uncapitalize(advice)];
    }),
    ['`test`', 'warning', 'somebody ran `latchkey notify --test`', 'nothing'],
  ];
  const page = readFileSync(PAGE_OF_NOTICES, 'utf8');
  expect(page).toMatch(TABLE);
  const table = rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
  await expect(page.replace(TABLE, () => `${table}\n`)).toMatchFileSnapshot(PAGE_OF_NOTICES);
});

test.each<[facts: SubjectNoticeInput | undefined, end: string]>([
  [facts('active', null), 'wallbox is connected again'],
  [facts('retrying', 'portal_unreachable'), 'wallbox is connected again'],
  [facts('unpaired', null, null), 'wallbox no longer needs attention'],
  [undefined, 'wallbox was removed from the hub'],
])('the message of a resolved notice says how the problem ended', (now, end) => {
  expect(resolvedMessage(notice('pairing_needed'), now)).toBe(end);
  expect(resolvedMessage({ ...notice('not_announced'), connection: null, appliance: null }, undefined)).toBe(
    'Resolved: m',
  );
});
