import { styleText } from 'node:util';
import type { Notice } from '../core/notice.ts';
import { printable } from './output.ts';

/** The exit status of `latchkey status` where nothing gets better until a person acts. */
const PERSON_NEEDED = 3;

/** A notice that stands, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/** Sets the exit status by the notices that stand. */
export function tellByStatus(notices: readonly Notice[]): void {
  if (notices.some(({ severity }) => severity === 'error')) process.exitCode = PERSON_NEEDED;
}
