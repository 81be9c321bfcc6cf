import { styleText } from 'node:util';
import type { ConditionResponse } from '../../control/messages.ts';
import type { ConnectionState } from '../../core/connections/connection-status.ts';
import type { ConditionSeverity } from '../../core/health/condition-record.ts';
import type { Notice } from '../../core/health/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { formatTimeSince } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';

/** The colour of a state whose gravest condition has this severity. */
export const SEVERITY_COLOURS = { error: 'red', warning: 'yellow', info: 'cyan' } as const satisfies Record<
  ConditionSeverity,
  string
>;

/** An active notice, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/**
 * Where a person logs in, and the code to enter there if there is one. If the connection has a grant, the link to the
 * hub's own page leads to the question whether an appliance may use it.
 */
export function loginInstruction(link: string, userCode: string | undefined, state: ConnectionState): string {
  const hasGrant = state === 'active' || state === 'retrying';
  if (hasGrant && URL.parse(link)?.pathname === '/pair')
    return `allow the appliance that asks to use this login, at ${printable(link)}`;
  const code = userCode === undefined ? '' : ` and enter ${printable(userCode)}`;
  return `log in at ${printable(link)}${code}`;
}

/** A condition, as a line. */
export function conditionLine(
  { message, what_to_do, since }: ConditionResponse,
  now = systemClock('').now().wall,
): string {
  const sinceText = since === null ? '' : ` Noticed ${formatTimeSince(since, now)}.`;
  return `${printable(message)}.${sinceText} ${printable(what_to_do)}.`;
}
