import type { ApplianceStatus } from '../../core/administration.ts';
import type { Condition, ConditionSeverity } from '../../core/health/condition.ts';
import type { Notice, NoticeCode } from '../../core/reports/notice.ts';
import { credentialsAdvice } from '../callback/pairing-messages.ts';
import type { DisplaySeverity } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** How an appliance stands, as people see it. */
type HealthKind =
  | 'connected'
  | 'held_up'
  | 'interrupted'
  | 'log_in_again'
  | 'not_connected'
  | 'waiting_for_login'
  | 'waiting_for_portal'
  | 'waiting_for_approval';

/** How an appliance stands, and what to do about it. */
export interface ApplianceHealth {
  readonly kind: HealthKind;
  readonly severity: DisplaySeverity;
  /** Nothing gets better until a person acts. */
  readonly needsAttention: boolean;
  /** Sentences: what is wrong, and what to do. */
  readonly advice: readonly string[];
}

/** Of what has a condition; what has none is good. */
const DISPLAY_SEVERITIES: Readonly<Record<ConditionSeverity, DisplaySeverity>> = {
  error: 'bad',
  warning: 'warn',
  info: 'neutral',
};

function isPairingCondition(code: Condition['code']): boolean {
  return code === 'login_open' || code === 'portal_awaited';
}

/** The icon and the colour of a condition. */
export function displaySeverity(condition: Pick<Condition, 'severity' | 'code'> | undefined): DisplaySeverity {
  if (condition === undefined) return 'good';
  return isPairingCondition(condition.code) ? 'waiting' : DISPLAY_SEVERITIES[condition.severity];
}

/**
 * @param conditions its own, the gravest first
 * @param notices its own
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
    ...conditions.flatMap((one) =>
      one.appliance === null
        ? []
        : [states.conditions[one.code](name), ...conditionDetails(one.code, appliance, texts)].join(' '),
    ),
    ...(authorizeUrl !== undefined && kind !== 'waiting_for_login' ? [states.newLoginOpen] : []),
    ...(wantedScope === undefined ? [] : [states.scopeChanged]),
  ];
  const [gravest] = conditions;
  return { kind, severity: displaySeverity(gravest), needsAttention: gravest?.severity === 'error', advice };
}

/** What more there is to say of a condition. */
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

/** The headline is of what is as grave as the gravest condition. @param conditions the gravest first */
export function hubHealth(
  conditions: readonly Condition[],
  appliances: readonly Pick<ApplianceStatus, 'name'>[],
  { overview }: Texts,
): HubHealth {
  const [gravest] = conditions;
  if (gravest === undefined) {
    const sentence = countedText(appliances, overview.oneConnected, overview.allConnected);
    return sentence === null
      ? { severity: 'neutral', headline: overview.noAppliances }
      : { severity: 'good', headline: sentence };
  }
  const alike = conditions.filter(({ severity }) => severity === gravest.severity);
  const named = (isMeant: (code: Condition['code']) => boolean) =>
    alike.flatMap(({ appliance: name, code }) => (name !== null && isMeant(code) ? { name } : []));
  const { needsAttention: needsSeeing, severalNeedAttention: severalNeed } = overview;
  switch (gravest.severity) {
    case 'error': {
      if (gravest.appliance === null) return { severity: 'bad', headline: overview.hubNeedsAttention };
      const isLogin = gravest.code === 'refused' || gravest.code === 'grant_damaged';
      const one = isLogin ? overview.needsLogin : needsSeeing;
      const needy = [...new Set(alike.map(({ appliance }) => appliance))];
      return { severity: 'bad', headline: needy.length > 1 ? severalNeed(needy.length) : one(gravest.appliance) };
    }
    case 'warning': {
      const isToSee = (code: Condition['code']) => code === 'without_credentials' || code === 'pairing_failed';
      const isHeldUp = (code: Condition['code']) => code !== 'approval_needed' && !isToSee(code);
      const sentence =
        countedText(named(isHeldUp), overview.notRefreshed, overview.severalNotRefreshed) ??
        countedText(
          named((code) => code === 'approval_needed'),
          overview.needsApproval,
          severalNeed,
        ) ??
        countedText(named(isToSee), needsSeeing, severalNeed);
      return { severity: 'warn', headline: sentence ?? overview.hubWarning };
    }
    case 'info': {
      const waiting =
        countedText(
          named((code) => code === 'login_open'),
          overview.waitsForLogin,
          overview.severalWaitForLogin,
        ) ??
        countedText(
          named((code) => code === 'portal_awaited'),
          overview.waitsForPortal,
          overview.severalWaitForPortal,
        );
      if (waiting !== null) return { severity: 'waiting', headline: waiting };
      const others = countedText(
        named(() => true),
        overview.needsFirstLogin,
        overview.severalNotConnected,
      );
      return { severity: 'neutral', headline: others ?? overview.hubWarning };
    }
  }
}

/** @returns null where there is none of them */
function countedText(
  [first, ...others]: readonly { readonly name: string }[],
  one: (name: string) => string,
  several: (count: number) => string,
): string | null {
  if (first === undefined) return null;
  return others.length === 0 ? one(first.name) : several(others.length + 1);
}
