import { styleText } from 'node:util';
import type { Notice } from '../core/notice.ts';
import { print, printable } from './output.ts';

/** The exit status of `latchkey status` where nothing gets better until a person acts. */
const PERSON_NEEDED = 3;

/** Prints the notices that stand, a line each, and an empty one behind them. */
export function showNotices(notices: readonly Notice[]): void {
  for (const { severity, message, what_to_do } of notices) {
    const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
    print(`${mark} ${printable(message)}. ${printable(what_to_do)}.`);
  }
  if (notices.length > 0) print('');
}

/** Sets the exit status by the notices that stand. */
export function tellByStatus(notices: readonly Notice[]): void {
  if (notices.some(({ severity }) => severity === 'error')) process.exitCode = PERSON_NEEDED;
}
