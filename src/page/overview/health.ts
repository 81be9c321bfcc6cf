import type { ApplianceStatus } from '../../core/administration.ts';
import type { Condition, ConditionSeverity } from '../../core/health/condition.ts';
import type { Notice, NoticeCode } from '../../core/reports/notice.ts';
import { credentialsAdvice } from '../callback/pairing-messages.ts';
import type { DisplaySeverity } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** The state of an appliance in the words of the page. */
type HealthKind =
  | 'connected'
  | 'held_up'
  | 'interrupted'
  | 'log_in_again'
  | 'not_connected'
  | 'waiting_for_login'
  | 'waiting_for_portal'
  | 'waiting_for_approval';

/** The state of an appliance, and what to do about it. */
export interface ApplianceHealth {
  readonly kind: HealthKind;
  readonly severity: DisplaySeverity;
  /** Whether a person has to act. */
  readonly needsAttention: boolean;
  /** Sentences that say what is wrong and what to do. */
  readonly advice: readonly string[];
}

/** For an appliance or hub with a condition; without one the severity is `good`. */
const DISPLAY_SEVERITIES: Readonly<Record<ConditionSeverity, DisplaySeverity>> = {
  error: 'bad',
  warning: 'warn',
  info: 'neutral',
};

function isPairingCondition(code: Condition['code']): boolean {
  return code === 'login_open' || code === 'portal_awaited';
}

/** The severity that the page shows for a condition; `good` for none. */
export function displaySeverity(condition: Pick<Condition, 'severity' | 'code'> | undefined): DisplaySeverity {
  if (condition === undefined) return 'good';
  return isPairingCondition(condition.code) ? 'waiting' : DISPLAY_SEVERITIES[condition.severity];
}

/**
 * The health of an appliance.
 * @param conditions the appliance's conditions, the most severe first
 * @param notices the appliance's notices
 */
export function applianceHealth(
  appliance: ApplianceStatus,
  conditions: readonly Condition[],
  notices: readonly Pick<Notice, 'code'>[],
  texts: Texts,
): ApplianceHealth {
  const { states } = texts;
  const { name, authorizeUrl, wantedScope } = appliance;
  const kind = healthKindOf(appliance);
  const warnings: Partial<Record<NoticeCode, (name: string) => string>> = states.warnings;
  const advice = [
    ...notices.flatMap(({ code }) => warnings[code]?.(name) ?? []),
    ...conditions.flatMap((condition) =>
      condition.appliance === null
        ? []
        : [states.conditions[condition.code](name), ...conditionDetails(condition.code, appliance, texts)].join(' '),
    ),
    ...(authorizeUrl !== undefined && kind !== 'waiting_for_login' ? [states.newLoginOpen] : []),
    ...(wantedScope === undefined ? [] : [states.scopeChanged]),
  ];
  const [mostSevere] = conditions;
  return { kind, severity: displaySeverity(mostSevere), needsAttention: mostSevere?.severity === 'error', advice };
}

/** Further advice for a condition. */
function conditionDetails(
  code: Condition['code'],
  { portal, credentialLocation = { portal }, pairingFailed }: ApplianceStatus,
  texts: Texts,
) {
  if (code === 'misconfigured') return credentialsAdvice(code, credentialLocation, texts);
  if (code !== 'pairing_failed' || pairingFailed === undefined) return [];
  const { reason } = pairingFailed;
  return [texts.result.reasons[reason], ...credentialsAdvice(reason, credentialLocation, texts)];
}

function healthKindOf({ state, waitingForApproval, expiresIn, authorizeUrl }: ApplianceStatus): HealthKind {
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

/** The headline counts the conditions of the highest severity. @param conditions the most severe first */
export function hubHealth(
  conditions: readonly Condition[],
  appliances: readonly Pick<ApplianceStatus, 'name'>[],
  { overview }: Texts,
): HubHealth {
  const [mostSevere] = conditions;
  if (mostSevere === undefined) {
    const headline = countedText(appliances, overview.oneConnected, overview.allConnected);
    return headline === null
      ? { severity: 'neutral', headline: overview.noAppliances }
      : { severity: 'good', headline };
  }
  const sameSeverity = conditions.filter(({ severity }) => severity === mostSevere.severity);
  const appliancesWith = (matches: (code: Condition['code']) => boolean) =>
    sameSeverity.flatMap(({ appliance: name, code }) => (name !== null && matches(code) ? { name } : []));
  const { needsAttention, severalNeedAttention } = overview;
  switch (mostSevere.severity) {
    case 'error': {
      if (mostSevere.appliance === null) return { severity: 'bad', headline: overview.hubNeedsAttention };
      const isLogin = mostSevere.code === 'refused' || mostSevere.code === 'grant_damaged';
      const single = isLogin ? overview.needsLogin : needsAttention;
      const affected = [...new Set(sameSeverity.map(({ appliance }) => appliance))];
      const headline = affected.length > 1 ? severalNeedAttention(affected.length) : single(mostSevere.appliance);
      return { severity: 'bad', headline };
    }
    case 'warning': {
      const isForPerson = (code: Condition['code']) => code === 'without_credentials' || code === 'pairing_failed';
      const isRefreshProblem = (code: Condition['code']) => code !== 'approval_needed' && !isForPerson(code);
      const headline =
        countedText(appliancesWith(isRefreshProblem), overview.notRefreshed, overview.severalNotRefreshed) ??
        countedText(
          appliancesWith((code) => code === 'approval_needed'),
          overview.needsApproval,
          severalNeedAttention,
        ) ??
        countedText(appliancesWith(isForPerson), needsAttention, severalNeedAttention);
      return { severity: 'warn', headline: headline ?? overview.hubWarning };
    }
    case 'info': {
      const waiting =
        countedText(
          appliancesWith((code) => code === 'login_open'),
          overview.waitsForLogin,
          overview.severalWaitForLogin,
        ) ??
        countedText(
          appliancesWith((code) => code === 'portal_awaited'),
          overview.waitsForPortal,
          overview.severalWaitForPortal,
        );
      if (waiting !== null) return { severity: 'waiting', headline: waiting };
      const others = countedText(
        appliancesWith(() => true),
        overview.needsFirstLogin,
        overview.severalNotConnected,
      );
      return { severity: 'neutral', headline: others ?? overview.hubWarning };
    }
  }
}

/** The text for one appliance or for several; null for none. */
function countedText(
  [first, ...others]: readonly { readonly name: string }[],
  one: (name: string) => string,
  several: (count: number) => string,
): string | null {
  if (first === undefined) return null;
  return others.length === 0 ? one(first.name) : several(others.length + 1);
}
