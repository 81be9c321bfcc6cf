import type { ApplianceStatus } from '../../core/administration.ts';
import type { Notice, NoticeCode } from '../../core/reports/notice.ts';
import type { Severity } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** How an appliance stands, as people see it. */
type HealthKind =
  | 'connected'
  | 'held_up'
  | 'interrupted'
  | 'log_in_again'
  | 'not_connected'
  | 'waiting_for_login'
  | 'waiting_for_approval';

/** How an appliance stands, and what to do about it. */
export interface ApplianceHealth {
  readonly kind: HealthKind;
  readonly severity: Severity;
  /** Nothing gets better until a person acts. */
  readonly needsPerson: boolean;
  /** Sentences: what is wrong, and what to do. */
  readonly advice: readonly string[];
}

/** @param notices all that stand */
export function applianceHealth(
  appliance: ApplianceStatus,
  notices: readonly Pick<Notice, 'code' | 'appliance'>[],
  { states }: Texts,
): ApplianceHealth {
  const { name, problem } = appliance;
  const kind = kindOf(appliance);
  const isMute = appliance.withoutCredentials === true;
  const needsPerson =
    isMute || kind === 'log_in_again' || kind === 'waiting_for_approval' || problem?.code === 'misconfigured';
  const advice: string[] = [];
  const warnings: Partial<Record<NoticeCode, (name: string) => string>> = states.warnings;
  for (const { code } of notices.filter((notice) => notice.appliance === name)) {
    const warning = warnings[code];
    if (warning !== undefined) advice.push(warning(name));
  }
  if (kind === 'waiting_for_approval') advice.push(states.approval(name));
  else if (problem !== null) advice.push(states.problems[problem.code](name));
  else if (kind === 'log_in_again') advice.push(states.needsLogin(name));
  else if (kind === 'not_connected') advice.push(states.unpaired(name));
  else if (kind === 'waiting_for_login') advice.push(states.loginOpen(name));
  if (appliance.authorizeUrl !== undefined && kind !== 'waiting_for_login') advice.push(states.newLoginOpen);
  if (isMute) advice.push(appliance.credentialsDamaged ? states.credentialsDamaged : states.withoutCredentials);
  if (appliance.wantedScope !== undefined) advice.push(states.otherScope);
  return { kind, severity: needsPerson ? 'bad' : SEVERITIES[kind], needsPerson, advice };
}

const SEVERITIES: Readonly<Record<HealthKind, Severity>> = {
  connected: 'good',
  held_up: 'warn',
  interrupted: 'bad',
  log_in_again: 'bad',
  not_connected: 'neutral',
  waiting_for_login: 'waiting',
  waiting_for_approval: 'bad',
};

function kindOf({ state, waitingForApproval, expiresIn }: ApplianceStatus): HealthKind {
  if (waitingForApproval !== undefined) return 'waiting_for_approval';
  switch (state) {
    case 'active':
      return 'connected';
    case 'retrying':
      return expiresIn !== null && expiresIn > 0 ? 'held_up' : 'interrupted';
    case 'needs_pairing':
      return 'log_in_again';
    case 'pairing':
      return 'waiting_for_login';
    case 'unpaired':
      return 'not_connected';
  }
}

/** An appliance and how it stands. */
export interface NamedHealth {
  readonly name: string;
  readonly health: ApplianceHealth;
}

/** The hub's health in one sentence. */
export interface HubHealth {
  readonly severity: Severity;
  readonly sentence: string;
}

/** @param hubNeeds whether something is wrong with the hub as a whole */
export function hubHealth(appliances: readonly NamedHealth[], hubNeeds: boolean, { overview }: Texts): HubHealth {
  const of = (...kinds: readonly ApplianceHealth['kind'][]) =>
    appliances.filter(({ health }) => kinds.includes(health.kind)).map(({ name }) => name);
  const needy = appliances.filter(({ health }) => health.needsPerson);
  const [first] = needy;
  if (first !== undefined) {
    if (needy.length > 1) return { severity: 'bad', sentence: overview.severalNeed(needy.length) };
    return { severity: 'bad', sentence: needOf(first, overview) };
  }
  if (hubNeeds) return { severity: 'bad', sentence: overview.hubNeeds };
  const tell = (
    severity: Severity,
    names: string[],
    one: (name: string) => string,
    several: (count: number) => string,
  ) => {
    const [name] = names;
    if (name === undefined) return null;
    return { severity, sentence: names.length === 1 ? one(name) : several(names.length) };
  };
  return (
    tell('warn', of('held_up', 'interrupted'), overview.heldUp, overview.severalHeldUp) ??
    tell('waiting', of('waiting_for_login'), overview.waits, overview.severalWait) ??
    tell('neutral', of('not_connected'), overview.needsFirstLogin, overview.severalNotConnected) ??
    tell('good', of('connected'), overview.one, overview.all) ?? { severity: 'neutral', sentence: overview.none }
  );
}

function needOf({ name, health }: NamedHealth, overview: Texts['overview']): string {
  switch (health.kind) {
    case 'log_in_again':
      return overview.needsLogin(name);
    case 'waiting_for_approval':
      return overview.needsApproval(name);
    default:
      return overview.needsSeeing(name);
  }
}
