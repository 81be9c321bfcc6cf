import type { ApplianceStatus } from '../../core/administration.ts';
import type { Notice, NoticeCode } from '../../core/reports/notice.ts';
import type { Mood } from '../signs.ts';
import type { Texts } from '../texts/en.ts';

/** How an appliance stands, as people see it. */
type StandingKind =
  | 'connected'
  | 'held_up'
  | 'interrupted'
  | 'log_in_again'
  | 'not_connected'
  | 'waiting_for_login'
  | 'waiting_for_approval';

/** How an appliance stands, and what to do about it. */
export interface Standing {
  readonly kind: StandingKind;
  readonly mood: Mood;
  /** Nothing gets better until a person acts. */
  readonly needsPerson: boolean;
  /** Sentences: what is wrong, and what to do. */
  readonly advice: readonly string[];
}

/** @param notices all that stand */
export function standingOf(
  appliance: ApplianceStatus,
  notices: readonly Pick<Notice, 'code' | 'appliance'>[],
  { states }: Texts,
): Standing {
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
  return { kind, mood: needsPerson ? 'bad' : MOODS[kind], needsPerson, advice };
}

const MOODS: Readonly<Record<StandingKind, Mood>> = {
  connected: 'good',
  held_up: 'warn',
  interrupted: 'bad',
  log_in_again: 'bad',
  not_connected: 'neutral',
  waiting_for_login: 'waiting',
  waiting_for_approval: 'bad',
};

function kindOf({ state, waitingForApproval, expiresIn }: ApplianceStatus): StandingKind {
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
