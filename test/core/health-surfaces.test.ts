// Renders every state on every surface with the real renderers, and checks that the surfaces agree.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exitStatusOf, statusText } from '../../src/cli/status/text.ts';
import { type StatusResponse, toWire } from '../../src/control/messages.ts';
import type { HubProblem, StatusReport } from '../../src/core/administration.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../src/core/connections/connection-status.ts';
import { APPLIANCE_CONDITION_CODES } from '../../src/core/health/appliance-conditions.ts';
import { type Condition, concernsHub, isHarmless, isOfAppliance } from '../../src/core/health/condition.ts';
import type { ConditionSeverity } from '../../src/core/health/condition-record.ts';
import { CONNECTION_CONDITION_CODES } from '../../src/core/health/connection-conditions.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import { HUB_CONDITION_CODES, HUB_PROBLEM_CODES, type HubConditionCode } from '../../src/core/health/hub-conditions.ts';
import type { Notice } from '../../src/core/health/notice.ts';
import { hubNotice, subjectNotice } from '../../src/core/health/notice-policy.ts';
import { PROBLEM_CODES, type ProblemCode } from '../../src/core/reports/problem.ts';
import { Secret } from '../../src/core/secret.ts';
import { statusLine } from '../../src/daemon/status-line.ts';
import type { CheckResult } from '../../src/doctor/check-result.ts';
import { checkAppliances, checkHub } from '../../src/doctor/checks/hub.ts';
import { checkStore } from '../../src/doctor/checks/state.ts';
import { createDoctorContext, type DoctorContext } from '../../src/doctor/context.ts';
import { Counters } from '../../src/metrics/counters.ts';
import { renderMetrics } from '../../src/metrics/exposition.ts';
import { overviewPage } from '../../src/page/overview/overview.ts';
import { en } from '../../src/page/texts/en.ts';
import { version } from '../../src/system/version.ts';
import {
  applianceStatus,
  connectionsOf,
  connectionsOnWire,
  hubStatus,
  named,
  PAGE,
} from '../control/status-samples.ts';
import { root } from '../project/checkout.ts';
import { waitingForApproval } from '../support/registration-samples.ts';
import { DAY, HOUR } from './samples.ts';

const NOW = Date.parse('2031-05-05T08:00:00Z');
const SINCE = '2031-05-05T06:00:00Z';
const SESSION = { cookie: new Secret('a-cookie-of-the-table'), csrfToken: 'the-csrf', lifetime: 60 };

/** A state of one appliance and, if there is one, a problem of the hub. */
interface State {
  readonly what: string;
  readonly appliance: ApplianceStatus;
  readonly hub?: HubConditionCode;
  /** What the status of its connection has besides. */
  readonly login?: Pick<ConnectionStatus, 'loginEnds' | 'loginEndingSince'>;
}

const wallbox = (changes: Partial<ApplianceStatus> = {}) =>
  applianceStatus({ name: 'wallbox', clientId: 'the-client-id', state: 'active', expiresIn: 3000, ...changes });

const problemOf = (code: ProblemCode) => ({ code, message: 'Something is wrong', since: SINCE });
const PAIRING_FAILED = { reason: 'client_unknown', message: 'The same in one', at: SINCE } as const;

const refusedRequests = (count: number) => ({
  since: SINCE,
  count,
  reason: 'the client_id or client_secret is wrong',
  address: '192.168.1.23',
});

const REFUSED = { state: 'needs_pairing', expiresIn: 0, problem: problemOf('refused') } as const;

const LOGIN_ENDING = { loginEnds: '2031-05-06T06:00:00Z', loginEndingSince: SINCE } as const;

const STATES: readonly State[] = [
  { what: 'active', appliance: wallbox() },
  { what: 'active, and a new scope is configured', appliance: wallbox({ wantedScope: 'B' }) },
  {
    what: 'active, and it has not asked for a week',
    appliance: wallbox({ unusualUsage: 'silent', lastToken: '2031-04-20T06:00:00Z' }),
  },
  { what: 'active, and it has not got a token yet', appliance: wallbox({ unusualUsage: 'never_served' }) },
  { what: 'active, and it has asked with a wrong secret', appliance: wallbox({ refused: refusedRequests(1) }) },
  { what: 'active, and it keeps asking with a wrong secret', appliance: wallbox({ refused: refusedRequests(3) }) },
  { what: 'active, and it asks very often', appliance: wallbox({ unusualUsage: 'asks_often' }) },
  { what: 'active, and the login ends by itself soon', appliance: wallbox(), login: LOGIN_ENDING },
  { what: 'active, and the portal granted less than was asked for', appliance: wallbox({ missingScope: ['Control'] }) },
  {
    what: 'active, and the portal gave no refresh token',
    appliance: wallbox({ withoutRefreshToken: true }),
    login: LOGIN_ENDING,
  },
  {
    what: 'retrying: portal_unreachable, and the login ends by itself soon',
    appliance: wallbox({ state: 'retrying', problem: problemOf('portal_unreachable') }),
    login: LOGIN_ENDING,
  },
  { what: 'unpaired', appliance: wallbox({ state: 'unpaired', expiresIn: null }) },
  {
    what: 'unpaired, and the last pairing failed',
    appliance: wallbox({ state: 'unpaired', expiresIn: null, pairingFailed: PAIRING_FAILED }),
  },
  {
    what: 'unpaired, and nobody logged in before the last pairing expired',
    appliance: wallbox({
      state: 'unpaired',
      expiresIn: null,
      pairingFailed: { ...PAIRING_FAILED, reason: 'expired' },
    }),
  },
  {
    what: 'pairing for the first time',
    appliance: wallbox({ state: 'pairing', expiresIn: null, authorizeUrl: 'https://portal.example/authorize' }),
  },
  {
    what: 'pairing for the first time, and the portal is unreachable',
    appliance: wallbox({ state: 'pairing', expiresIn: null }),
  },
  {
    what: 'waits for approval',
    appliance: wallbox({ state: 'unpaired', expiresIn: null, waitingForApproval: waitingForApproval() }),
  },
  { what: 'no longer declared', appliance: wallbox({ withoutCredentials: true }) },
  { what: 'credentials damaged', appliance: wallbox({ withoutCredentials: true, credentialsDamaged: true }) },
  {
    what: 'retrying: misconfigured, to be retried right after a start or a reload',
    appliance: wallbox({
      state: 'retrying',
      problem: { ...problemOf('misconfigured'), condition: 'credentials_untried' },
    }),
  },
  {
    what: 'retrying: its portal is not in the configuration',
    appliance: wallbox({ state: 'retrying', problem: { ...problemOf('misconfigured'), condition: 'portal_missing' } }),
  },
  {
    what: 'retrying: an appliance reported its access token a second time within a minute',
    appliance: wallbox({
      state: 'retrying',
      expiresIn: 0,
      problem: { ...problemOf('portal_rejected'), condition: 'access_token_rejected' },
    }),
  },
  ...PROBLEM_CODES.flatMap((code) => {
    const problem = problemOf(code);
    const state = code === 'refused' ? 'needs_pairing' : 'retrying';
    // A full disk is also a problem of the hub: src/hub/hub-problems.ts.
    const hub = code === 'store_unwritable' ? { hub: code } : {};
    return [
      { what: `${state}: ${code}, the token is valid`, appliance: wallbox({ state, problem }), ...hub },
      { what: `${state}: ${code}, no token`, appliance: wallbox({ state, problem, expiresIn: 0 }), ...hub },
    ] as const;
  }),
  {
    what: 'needs_pairing: refused, and the last pairing failed',
    appliance: wallbox({ ...REFUSED, pairingFailed: PAIRING_FAILED }),
  },
  {
    what: 'needs_pairing: refused, and the portal gave no refresh token',
    appliance: wallbox({ ...REFUSED, withoutRefreshToken: true }),
  },
  ...(['portal_changed', 'grant_damaged', 'connection_damaged'] as const).map((condition) => ({
    what: `needs_pairing: ${condition}`,
    appliance: wallbox({ ...REFUSED, expiresIn: null, problem: { ...REFUSED.problem, condition } }),
  })),
  ...HUB_CONDITION_CODES.map((hub) => ({ what: `hub: ${hub}`, appliance: wallbox(), hub })),
];

function connectionsIn({ appliance, login }: Pick<State, 'appliance' | 'login'>): ConnectionStatus[] {
  return connectionsOf([appliance]).map((connection) => ({ ...connection, ...login }));
}

/** What every surface shows for a state. */
async function rendered(state: State) {
  const { appliance, hub: code } = state;
  const connections = connectionsIn(state);
  const facts = code === undefined ? [] : [{ code, message: 'Something is wrong with the hub', since: SINCE }];
  const problems = facts.filter((one): one is HubProblem => HUB_PROBLEM_CODES.some((known) => known === one.code));
  const conditions = deriveConditions({
    connections,
    appliances: [appliance],
    problems: facts,
    pageUrl: PAGE,
    now: NOW,
  });
  const status = (notices: readonly Notice[]): StatusReport => ({
    hub: hubStatus({ version: version(), ...(problems.length > 0 && { problems }) }),
    connections,
    appliances: [appliance],
    conditions,
    notices,
  });
  const later = status(noticesAfter(2 * DAY, conditions, appliance));
  const now = status(noticesAfter(0, conditions, appliance));
  const page = overviewPage(later, { hubName: 'Cellar hub', texts: en }, SESSION, named('home'), NOW).body;
  const metrics = await renderMetrics({
    status: async () => later,
    connectionIds: () => new Map(),
    applianceIds: () => new Map(),
    clockOffset: () => null,
    counters: new Counters(),
    portalsReached: () => new Map(),
  });
  const firstGroup = (pattern: RegExp, within: string) => pattern.exec(within)?.[1] ?? '';
  return {
    conditions,
    text: statusText(statusResponse(now)),
    textLater: statusText(statusResponse(later)),
    exit: exitStatusOf(conditions),
    headline: firstGroup(/<h1 id="health">([^<]*)</, page),
    headlineIcon: firstGroup(/<div class="health" role="status"><svg class="icon (\w+)"/, page),
    rowIcon: firstGroup(/<p class="state (\w+)"/, page),
    row: firstGroup(/<p class="state .*?<span>([^<]*)</, page),
    page: page.replaceAll('&#39;', "'"),
    line: statusLine(later),
    findings: await findings(now),
    notices: { now: now.notices, later: later.notices },
    metrics,
    problems,
  };
}

function statusResponse(status: StatusReport): StatusResponse {
  return { ...toWire(status), connections: connectionsOnWire(status.connections) };
}

/** The notices of conditions that have lasted, and failed, for `lasting` ms. */
function noticesAfter(
  duration: number,
  conditions: readonly Condition[],
  { state, expiresIn }: ApplianceStatus,
): Notice[] {
  const left = (expiresIn ?? 0) * 1000;
  return conditions.flatMap((condition) => {
    if (concernsHub(condition)) return hubNotice(condition, duration) ?? [];
    // src/broker/status/notice-input.ts leaves them out.
    if (isOfAppliance(condition) && condition.code !== 'approval_needed') return [];
    const isOfGrant = condition.since !== null && condition.code !== 'approval_needed';
    const grant = isOfGrant ? { generation: 1, isFailing: true, remaining: left, lifetime: HOUR, overdue: null } : null;
    const failing = isOfGrant ? { duration: duration, since: SINCE } : null;
    const name = condition.appliance ?? condition.connection;
    return subjectNotice({ key: name, title: name, state, condition, grant }, failing) ?? [];
  });
}

/** The doctor's view of a machine without a hub and a configuration. */
let machine: Promise<DoctorContext> | undefined;

async function findings(status: StatusReport): Promise<readonly CheckResult[]> {
  machine ??= createDoctorContext({ file: '/nowhere/latchkey.toml', env: {} });
  const context: DoctorContext = {
    ...(await machine),
    hub: { kind: 'running', portals: [], ...statusResponse(status) },
  };
  const found = await Promise.all([checkAppliances(context), checkHub(context), checkStore(context)]);
  return found.flat();
}

/** How each surface shows a severity; `well` is a state without conditions, or only with one about the usage. */
const BY_SEVERITY = {
  error: { exit: 3, icon: 'bad', result: 'fail' },
  warning: { exit: 0, icon: 'warn', result: 'warn' },
  info: { exit: 0, icon: /^(neutral|waiting)$/, result: 'ok' },
  well: { exit: 0, icon: 'good', result: 'ok' },
} as const satisfies Record<ConditionSeverity | 'well', object>;

const GRAVEST = ['fail', 'warn', 'ok'];

function shownSeverity(condition: Condition | undefined): keyof typeof BY_SEVERITY {
  return condition === undefined || isHarmless(condition) ? 'well' : condition.severity;
}

describe.each(STATES)('$what', (state) => {
  it('every surface shows the same severity and advice for the state', async () => {
    const shown = await rendered(state);
    const [gravest] = shown.conditions;
    const expected = BY_SEVERITY[shownSeverity(gravest)];
    expect(shown.exit).toBe(expected.exit);
    expect(shown.headlineIcon).toMatch(expected.icon);
    const results = shown.findings.map(({ result }) => result);
    expect(GRAVEST.find((one) => results.some((result) => result === one))).toBe(expected.result);

    const ofAppliance = shown.conditions.filter(({ appliance }) => appliance !== null);
    expect(shown.rowIcon).toMatch(BY_SEVERITY[shownSeverity(ofAppliance[0])].icon);
    for (const condition of shown.conditions) {
      const { code, severity, appliance, message, what_to_do } = condition;
      const ofPage = concernsHub(condition)
        ? en.states.hub[condition.code]
        : en.states.conditions[condition.code]('wallbox');
      // These two codes have lines with more detail.
      if (code === 'approval_needed') expect(shown.text).toContain('latchkey appliance approve wallbox');
      else if (code === 'login_open') expect(shown.text).toContain('log in at https://portal.example/authorize');
      else for (const text of [shown.text, shown.textLater]) expect(text).toContain(`${what_to_do}.`);
      expect(shown.page).toContain(ofPage);
      expect(shown.findings).toContainEqual(
        expect.objectContaining({ result: BY_SEVERITY[severity].result, detail: `${message}. ${what_to_do}` }),
      );
      if (code !== 'login_open')
        expect(`${shown.text}${shown.page}${message}`).not.toMatch(/waits? for (the|a) login/i);
      const labels = `code="${code}",severity="${severity}"${appliance === null ? '' : ',connection="wallbox",appliance="wallbox"'}`;
      expect(shown.metrics).toContain(`latchkey_condition{${labels}} 1\n`);
    }
    for (const name of state.appliance.missingScope ?? [])
      for (const text of [shown.text, shown.page]) expect(text).toContain(name);
    expect(shown.metrics.match(/^latchkey_condition\{/gm)?.length ?? 0).toBe(shown.conditions.length);
  });

  it('a notice says the same as a condition of the state, and an error has a notice at once', async () => {
    const { conditions, notices, metrics } = await rendered(state);
    for (const { severity, appliance, what_to_do } of [...notices.now, ...notices.later]) {
      expect(conditions).toContainEqual(expect.objectContaining({ severity, appliance, what_to_do }));
    }
    // The hub reports damaged credentials of all appliances together, as `store_changed`.
    const isError = conditions.some(({ severity, code }) => severity === 'error' && code !== 'credentials_damaged');
    expect(notices.now.some(({ severity }) => severity === 'error')).toBe(isError);
    expect(notices.later.some(({ severity }) => severity === 'error')).toBe(isError);
    for (const { code, severity } of notices.later) {
      expect(metrics).toContain(`latchkey_notices{notice="${code}",severity="${severity}"`);
    }
  });

  it("systemd's status line counts a warning or info state, and names the appliance with an error", async () => {
    const { conditions, line } = await rendered(state);
    const [gravest] = conditions;
    const own = conditions.find(({ appliance }) => appliance !== null);
    if (shownSeverity(gravest) === 'well') expect(line).toBe('1 active');
    if (own?.severity === 'error') expect(line).toMatch(/needs (pairing|attention) \(wallbox\)/);
    if (shownSeverity(own) === 'info') expect(line).toMatch(/^1 (active|unpaired|pairing)$/);
    if (own?.severity === 'warning') expect(line).toMatch(/^1 retrying|\(wallbox\)/);
    if (gravest !== undefined && gravest.appliance === null) expect(line).toMatch(/; ./);
  });
});

describe.each([
  ['reload', 'run "latchkey reload"'],
  ['service_restart', 'restart the hub ("sudo systemctl restart latchkey")'],
  ['app_restart', 'restart the app in Home Assistant'],
  ['new_start', 'stop the hub and start it again'],
] as const)('corrected credentials that take effect by a %s', (appliedBy, words) => {
  const credentialLocation = { portal: 'home', secretFile: '/x/home.secret', appliedBy };
  const problem = problemOf('misconfigured');
  const failed = { ...PAIRING_FAILED, reason: 'misconfigured' } as const;

  it.each([
    ['refresh', wallbox({ state: 'retrying', problem, credentialLocation })],
    ['pairing', wallbox({ state: 'unpaired', expiresIn: null, pairingFailed: failed, credentialLocation })],
  ])('every surface says how corrected credentials take effect after a failed %s', async (_, appliance) => {
    const { text, page, findings: found, notices } = await rendered({ what: '', appliance });
    const doctor = found.find(({ name }) => name === '.wallbox')?.detail;
    const texts = [text, doctor, ...notices.now.map(({ what_to_do }) => what_to_do)];
    for (const each of texts) expect(each).toContain(words);
    expect(page.replaceAll(/[“”]/g, '"').replaceAll('sudo latchkey', 'latchkey')).toContain(words);
  });
});

it('the states of this test cover every condition code', () => {
  const found = STATES.flatMap((state) => {
    const { appliance, hub } = state;
    const problems = hub === undefined ? [] : [{ code: hub, message: '', since: SINCE }];
    return deriveConditions({
      connections: connectionsIn(state),
      appliances: [appliance],
      problems,
      pageUrl: PAGE,
      now: NOW,
    }).map(({ code }) => code);
  });
  expect(new Set(found)).toEqual(
    new Set([...HUB_CONDITION_CODES, ...CONNECTION_CONDITION_CODES, ...APPLIANCE_CONDITION_CODES]),
  );
});

it('docs/health.md contains the table of all states', async () => {
  const rows = await Promise.all(
    STATES.map(async (state) => {
      const shown = await rendered(state);
      const { headline, headlineIcon, row, rowIcon, notices } = shown;
      const codes = (list: readonly Notice[]) => list.map(({ code, severity }) => `${code} (${severity})`).join(', ');
      const results = shown.findings.map(({ result }) => result).filter((result) => result !== 'ok');
      const noticeCell = codes(notices.now) || (notices.later.length > 0 ? `later: ${codes(notices.later)}` : 'none');
      return [
        ...[state.what, shown.conditions[0]?.severity ?? 'none', String(shown.exit)],
        ...[`${headline} (${headlineIcon})`, `${row} (${rowIcon})`, shown.line],
        ...[[...new Set(results)].join(', ') || 'ok', noticeCell],
      ];
    }),
  );
  const head = ['state', 'severity', 'exit status', "page's headline", "page's row", 'systemd', 'doctor', 'notice'];
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  await expect(`${INTRODUCTION}\n${table}\n`).toMatchFileSnapshot(join(root, 'docs/health.md'));
});

const INTRODUCTION = `# Health conditions

\`core/health/derive-conditions.ts\` is the only code that decides what is wrong. It derives conditions from the state of the hub and its appliances.
A condition states its severity, when it began, which appliance it is about, how long that appliance still gets its current token, and what to do.
A hub without problems has no condition, and neither has a paired appliance without problems. \`latchkey status\` and its exit status, the page, systemd's
status line, the doctor, the metrics and the notices show these conditions and decide nothing themselves.

- \`error\`: something is broken, and stays broken until a person acts. The exit status of \`latchkey status\` is 3.
- \`warning\`: a problem that may resolve itself, or something that a person is asked to do and that breaks nothing yet: to approve an appliance, or to
  log in again before a login [ends by itself](decisions/login-ends.md).
- \`info\`: nothing is wrong, but an appliance gets no tokens until somebody logs in for the first time, or the way in which it uses its tokens is
  pointed out: it has not got one yet, it has asked with wrong credentials once or twice, it has not asked for a week, or it asks more than a hundred
  times as often as a token expires. Of an appliance with several connections, this is looked at for each. The last changes no headline, and none of these
  has a notice.

An appliance that asks with wrong credentials three times is a warning, until it asks with the right ones or gets others. It has no notice, because any
device in the network can send such requests if it knows the \`client_id\`. They are counted in memory only.

\`latchkey status --json\` lists them in \`conditions\`, the most severe first: \`{code, severity, connection, appliance, appliances, message, what_to_do, since, until}\`.
\`connection\` is null for the hub as a whole, and \`appliance\` also for a login that several share; \`until\` is when the appliance's current token expires, or null. \`wrong_setup_codes\` also has \`address\`, that of the device. For an error the hub sends a notice
([notices.md](notices.md)) at once. For a problem that may resolve itself, it waits for some time before it sends one. Some conditions have no notice
of their own: damaged credentials, which the hub's notice \`store_changed\` reports, a pairing that failed, an appliance that is no longer declared, and
what is said of the requests of an appliance.
After a restart, \`status\` shows an earlier notice only if the current conditions confirm it.

The table shows every state of one appliance, \`wallbox\`, and every problem of the hub, as each surface shows it.
\`test/core/health-surfaces.test.ts\` generates it with the real renderers, and fails if two of them disagree. The last column has the notice that is
sent at once, or after "later:" the one that is open when the problem has lasted for two days.
`;
