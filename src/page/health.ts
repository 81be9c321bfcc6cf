import type { StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionStatus, LoginStatus } from '../core/connections/connection-status.ts';
import {
  type Condition,
  concernsHub,
  groupByConnection,
  groupOf,
  groupOfAppliances,
  isHarmless,
  isOfAppliance,
  type SubjectCondition,
} from '../core/health/condition.ts';
import type { ConditionSeverity } from '../core/health/condition-record.ts';
import type { Notice, NoticeCode } from '../core/health/notice.ts';
import { capitalize } from '../core/letter-case.ts';
import { USER_CODE_FORMAT } from '../core/letter-code.ts';
import type { Named } from '../core/name.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import { credentialsAdvice, credentialsForm } from './callback/pairing-messages.ts';
import { joinTitles, renewalText, titlesOf } from './connection-names.ts';
import type { DisplaySeverity } from './elements.ts';
import { appliancePath } from './paths.ts';
import type { Texts } from './texts/en.ts';

/** The state of an appliance or a connection in the words of the page. */
type HealthKind =
  | 'connected'
  | 'held_up'
  | 'interrupted'
  | 'log_in_again'
  | 'not_connected'
  | 'waiting_for_login'
  | 'waiting_for_portal'
  | 'waiting_for_approval'
  | 'not_used_yet'
  | 'refused';

/** What is said of an appliance whose connection is fine, in place of that it is connected. */
const KINDS_OF_CONNECTED: Partial<Record<Condition['code'], HealthKind>> = {
  appliance_never_served: 'not_used_yet',
  appliance_refused: 'refused',
};

/** The state of an appliance or a connection, and what to do about it. */
export interface LoginHealth {
  readonly kind: HealthKind;
  readonly severity: DisplaySeverity;
  /** Whether a person has to act. */
  readonly needsAttention: boolean;
  /** Sentences that say what is wrong and what to do. */
  readonly advice: readonly string[];
  /** The page that helps, unless that is a login at the portal; null if there is none. */
  readonly remedy: { readonly href: string; readonly text: string } | null;
}

/** The most severe first. */
export const SEVERITY_ORDER: readonly DisplaySeverity[] = ['bad', 'warn', 'waiting', 'neutral', 'good'];

/** For an appliance or hub with a condition; without one the severity is `good`. */
const DISPLAY_SEVERITIES: Readonly<Record<ConditionSeverity, DisplaySeverity>> = {
  error: 'bad',
  warning: 'warn',
  info: 'neutral',
};

/** The severity that the page shows for a condition; `good` for none, or if it only points something out. */
export function displaySeverity(condition: Condition | undefined): DisplaySeverity {
  if (condition === undefined || isHarmless(condition)) return 'good';
  const group = concernsHub(condition) ? null : groupOf(condition);
  return group === 'pairing' ? 'waiting' : DISPLAY_SEVERITIES[condition.severity];
}

/**
 * The health of an appliance.
 * @param conditions the appliance's conditions, the most severe first
 * @param notices the appliance's notices
 * @param used its connections: if there are several, a sentence about one of them names it
 */
export function applianceHealth(
  appliance: ApplianceStatus,
  conditions: readonly Condition[],
  notices: readonly Pick<Notice, 'code'>[],
  used: readonly (Named & Pick<ConnectionStatus, 'own'>)[],
  texts: Texts,
): LoginHealth {
  const { title } = appliance;
  const titleOf = titlesOf(used);
  const subjectOf = (condition: SubjectCondition) => {
    const login = titleOf(condition.connection);
    return used.length < 2 || isOfAppliance(condition) || login === title ? title : `${title} (${login})`;
  };
  return loginHealth(appliance, title, conditions, notices, texts, subjectOf, used[0]?.own);
}

/** The health of a connection that several appliances share, or that nobody uses. */
export interface ConnectionHealth extends LoginHealth {
  /** What is wrong with the login alone. */
  readonly severity: DisplaySeverity;
  /** Whether a person has to act, for the login or for one of its appliances. */
  readonly needsAttention: boolean;
  /** The most severe of the login and its appliances. */
  readonly overallSeverity: DisplaySeverity;
}

/** Returns the health of each connection that several appliances share, or that nobody uses. */
export function connectionHealth(
  { conditions, notices }: Pick<StatusReport, 'conditions' | 'notices'>,
  texts: Texts,
): (connection: ConnectionStatus) => ConnectionHealth {
  const [byConnection, byAppliance] = [groupByConnection(conditions), groupOfAppliances(conditions)];
  const noticesOf = Map.groupBy(
    notices.filter(({ appliance }) => appliance === null),
    ({ connection }) => connection,
  );
  return (connection) => {
    const { name, users } = connection;
    const health = ofConnection(connection, byConnection.get(name) ?? [], noticesOf.get(name) ?? [], texts);
    const ofUsers = users.flatMap((user) => byAppliance.get(user.name) ?? []);
    const severities = [health.severity, ...ofUsers.map(displaySeverity)];
    return {
      ...health,
      needsAttention: health.needsAttention || ofUsers.some(({ severity }) => severity === 'error'),
      overallSeverity: SEVERITY_ORDER.find((one) => severities.includes(one)) ?? health.severity,
    };
  };
}

/** What is said of the login of a connection. */
function ofConnection(
  connection: ConnectionStatus,
  conditions: readonly Condition[],
  notices: readonly Pick<Notice, 'code'>[],
  texts: Texts,
): LoginHealth {
  const { title, users } = connection;
  if (users.length > 0) return loginHealth(connection, joinTitles(users, texts), conditions, notices, texts);
  const quoted = texts.connection.quoted(title);
  const health = loginHealth(connection, quoted, conditions, notices, texts);
  return { ...health, advice: health.advice.map((text) => beginsSentence(text, quoted)) };
}

/** An appliance whose use of one of its connections is pointed out, with that connection in its title. */
function withUnusualConnection(appliance: ApplianceStatus): ApplianceStatus {
  const { title, unusualConnection, refused } = appliance;
  if (unusualConnection === undefined || refused !== undefined) return appliance;
  return { ...appliance, title: `${title} (${unusualConnection})` };
}

/** The conditions of how an appliance uses a connection. */
const USE_CODES: readonly SubjectCondition['code'][] = [
  'appliance_never_served',
  'appliance_silent',
  'appliance_asks_often',
];

/** Whether a condition of an appliance is about another of its connections than the one with this title. */
export function isAboutOther(
  code: SubjectCondition['code'],
  { unusualConnection }: Pick<ApplianceStatus, 'unusualConnection'>,
  title: string,
): boolean {
  return USE_CODES.includes(code) && unusualConnection !== undefined && unusualConnection !== title;
}

/** The sentence for a condition. That about one of several connections of an appliance names it. */
export function conditionText(
  code: SubjectCondition['code'],
  subject: string,
  { unusualConnection }: Pick<ApplianceStatus, 'unusualConnection'>,
  { states }: Texts,
): string {
  if (unusualConnection === undefined) return states.conditions[code](subject);
  if (code === 'appliance_never_served') return states.neverServedOf(subject, unusualConnection);
  return states.conditions[code](USE_CODES.includes(code) ? `${subject} (${unusualConnection})` : subject);
}

/** What the health of an appliance and of a connection is derived from. */
type HealthInput = LoginStatus &
  Pick<ApplianceStatus, 'name' | 'declared' | 'waitingForApproval' | 'unusualConnection'>;

/** @param subject what the sentences are about; `subjectOf`: what that about a condition is about; `own`: the login is its own */
function loginHealth(
  login: HealthInput,
  subject: string,
  conditions: readonly Condition[],
  notices: readonly Pick<Notice, 'code'>[],
  texts: Texts,
  subjectOf: (condition: SubjectCondition) => string = () => subject,
  own = false,
): LoginHealth {
  const { states } = texts;
  const { authorizeUrl, wantedScope } = login;
  const [mostSevere] = conditions;
  const kindOfLogin = healthKindOf(login);
  const kindsOfUse =
    kindOfLogin === 'connected' ? conditions.flatMap(({ code }) => KINDS_OF_CONNECTED[code] ?? []) : [];
  const kind = kindsOfUse[0] ?? kindOfLogin;
  const warnings: Partial<Record<NoticeCode, (name: string) => string>> = states.warnings;
  const advice = [
    ...notices.flatMap(({ code }) => warnings[code]?.(subject) ?? []),
    ...conditions.flatMap((condition) =>
      concernsHub(condition)
        ? []
        : [
            conditionText(condition.code, subjectOf(condition), login, texts),
            ...conditionDetails(condition.code, login, texts),
          ].join(' '),
    ),
    ...(authorizeUrl !== undefined && kind !== 'waiting_for_login'
      ? [openLoginText(authorizeUrl, own ? subject : null, states)]
      : []),
    ...(wantedScope === undefined ? [] : [states.scopeChanged]),
  ];
  const needsAttention = mostSevere?.severity === 'error';
  const remedy = remedyOf(login, conditions, texts);
  return { kind, severity: displaySeverity(mostSevere), needsAttention, advice, remedy };
}

function remedyOf(
  { name, declared, credentialLocation, pairingFailed }: HealthInput,
  conditions: readonly Condition[],
  { portal, appliance }: Texts,
): LoginHealth['remedy'] {
  const form =
    credentialLocation !== undefined && conditions.some(({ code }) => isClientRejected(code, pairingFailed))
      ? credentialsForm(credentialLocation)
      : null;
  if (form !== null) return { href: form, text: portal.again };
  const needsSecret = conditions.some(({ code }) => code === 'appliance_refused' || code === 'without_credentials');
  return needsSecret && !declared ? { href: appliancePath(name, 'rotate-secret'), text: appliance.newSecret } : null;
}

/** Whether a condition of a connection says that its portal does not accept the hub as its client. */
export function isClientRejected(code: Condition['code'], pairingFailed: LoginStatus['pairingFailed']): boolean {
  const reason = code === 'pairing_failed' ? pairingFailed?.reason : code;
  return reason !== undefined && publicReason(reason) === 'misconfigured';
}

/** What is open although the connection has a grant: a new login, or an appliance that asks whether it may use it. */
function openLoginText(authorizeUrl: string, owner: string | null, states: Texts['states']): string {
  if (userCodeOf(authorizeUrl) === null) return states.newLoginOpen;
  return owner === null ? states.useRequested : states.ownUseRequested(owner);
}

/** The user code of the hub's own page for a device flow; null for the portal's login link. */
export function userCodeOf(authorizeUrl: string): string | null {
  const url = URL.parse(authorizeUrl);
  return url?.pathname === '/pair' ? USER_CODE_FORMAT.parse(url.searchParams.get('user_code') ?? '') : null;
}

/** Further advice for a condition. */
function conditionDetails(
  code: Condition['code'],
  { portal, credentialLocation = { portal }, pairingFailed, withoutRefreshToken, missingScope }: LoginStatus,
  texts: Texts,
) {
  if (withoutRefreshToken === true && (code === 'login_ending' || code === 'refused'))
    return [texts.states.withoutRefreshToken];
  if (code === 'permissions_missing' && missingScope !== undefined)
    return [texts.states.missingPermissions(missingScope.join(', '))];
  if (code === 'misconfigured') return credentialsAdvice(code, credentialLocation, texts);
  if (code !== 'pairing_failed' || pairingFailed === undefined) return [];
  const { reason } = pairingFailed;
  return [texts.result.reasons[reason], ...credentialsAdvice(reason, credentialLocation, texts)];
}

function healthKindOf({ state, waitingForApproval, expiresIn, authorizeUrl }: HealthInput): HealthKind {
  if (waitingForApproval !== undefined) return 'waiting_for_approval';
  switch (state) {
    case 'active':
      return 'connected';
    case 'retrying':
      return expiresIn !== null && expiresIn > 0 ? 'held_up' : 'interrupted';
    case 'needs_pairing':
      return 'log_in_again';
    case 'pairing':
      return authorizeUrl === undefined ? 'waiting_for_portal' : 'waiting_for_login';
    case 'unpaired':
      return 'not_connected';
  }
}

/** The hub's health in one sentence. */
export interface HubHealth {
  readonly severity: DisplaySeverity;
  readonly headline: string;
}

type Headline = keyof Texts['overview']['headlines'];

/** Selects conditions. */
type Selection = (condition: SubjectCondition) => boolean;

/**
 * Of the conditions of the highest severity, the headline is about those that the first rule with one of them selects; if
 * the rule has a second selection, one of them must be of that too.
 */
const HEADLINE_RULES: Readonly<
  Record<ConditionSeverity, readonly (readonly [Headline, Selection, needed?: Selection])[]>
> = {
  error: [
    ['needsLogin', (one) => groupOf(one) === 'needs pairing'],
    ['clientRejected', ({ code }) => code === 'misconfigured'],
    ['needsAttention', () => true],
  ],
  warning: [
    ['notRefreshed', (one) => groupOf(one) === 'retrying' && one.code !== 'access_token_rejected'],
    ['waitsForAccess', ({ code }) => code === 'access_token_rejected'],
    ['needsApproval', (one) => groupOf(one) === 'waits for approval'],
    ['refused', ({ code }) => code === 'appliance_refused'],
    ['needsAttention', () => true],
  ],
  info: [
    ['notConnected', (one) => groupOf(one) !== 'active', (one) => groupOf(one) === 'unpaired'],
    ['waitsForLogin', ({ code }) => code === 'login_open'],
    ['waitsForPortal', ({ code }) => code === 'portal_awaited'],
    ['refused', ({ code }) => code === 'appliance_refused'],
    ['neverServed', ({ code }) => code === 'appliance_never_served'],
    ['silent', () => true],
  ],
};

/** The headline counts the conditions of the highest severity. */
export function hubHealth(
  status: Pick<StatusReport, 'conditions' | 'appliances' | 'connections'>,
  texts: Texts,
): HubHealth {
  const { conditions, appliances } = status;
  const { overview } = texts;
  const problems = conditions.filter((condition) => !isHarmless(condition));
  const [mostSevere] = problems;
  if (mostSevere === undefined) {
    const [first, ...others] = appliances;
    if (first === undefined) return { severity: 'neutral', headline: overview.noAppliances };
    const headline =
      others.length === 0 ? overview.oneConnected(first.title) : overview.allConnected(appliances.length);
    return { severity: 'good', headline };
  }
  if (mostSevere.code === 'no_portal') return { severity: 'warn', headline: texts.states.hub.no_portal };
  const { severity } = mostSevere;
  if (severity === 'error' && concernsHub(mostSevere)) return { severity: 'bad', headline: overview.hubNeedsAttention };
  const ofSubjects = problems.filter((one) => one.severity === severity).filter((one) => !concernsHub(one));
  for (const [headline, matches, needed = matches] of HEADLINE_RULES[severity]) {
    const found = ofSubjects.filter(matches);
    if (found.some(needed))
      return { severity: displaySeverity(found[0]), headline: sentenceOn(found, headline, status, texts) };
  }
  return { severity: DISPLAY_SEVERITIES[severity], headline: overview.hubWarning };
}

/** The sentence about the subjects of these conditions: one appliance, one login that is shared, or so many appliances. */
function sentenceOn(
  conditions: readonly SubjectCondition[],
  headline: Headline,
  { appliances, connections }: Pick<StatusReport, 'appliances' | 'connections'>,
  texts: Texts,
): string {
  const { headlines, severalAppliances } = texts.overview;
  const titleOf = titlesOf(appliances.map(withUnusualConnection));
  const used = conditions.filter((one) => one.appliances.length > 0);
  // A connection that nobody uses is not counted beside those that are in use.
  const counted = used.length > 0 ? used : conditions;
  const names = new Set(counted.map(({ connection, appliance }) => appliance ?? `login ${connection}`));
  const affected = new Set(counted.flatMap((one) => one.appliances));
  const [first] = counted;
  if (first === undefined || (names.size > 1 && affected.size > 1))
    return headlines[headline](severalAppliances(affected.size), affected.size);
  if (first.appliance !== null) return headlines[headline](titleOf(first.appliance), 1);
  const login = titlesOf(connections)(first.connection);
  if (headline === 'needsLogin') return renewalText(login, first.appliances.map(titleOf), texts);
  return beginsSentence(headlines[headline](texts.connection.quoted(login), 1), texts.connection.quoted(login));
}

/** A sentence with a capital letter if it begins with these words, which are written within a sentence otherwise. */
function beginsSentence(sentence: string, words: string): string {
  return sentence.startsWith(words) ? capitalize(sentence) : sentence;
}
