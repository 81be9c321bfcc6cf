import { styleText } from 'node:util';
import type { ConditionResponse } from '../../control/messages.ts';
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

/** Where a person logs in, and the code to enter there if there is one. */
export function loginInstruction(link: string, userCode: string | undefined): string {
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
