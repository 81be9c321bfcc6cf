import { Command } from 'commander';
import { DAY } from '../../core/clock.ts';
import { nameFromTitle } from '../../core/name.ts';
import type { SkipReason } from '../../core/pairings/pairing-batch.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import { connectHub } from '../hub-connection.ts';
import { print, printJson } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';
import { CONNECTION_NAME } from './grant.ts';

/** `latchkey history NAME` */
export function historyCommand(): Command {
  return new Command('history')
    .description(
      'show what happened to a connection, newest first: pairings, refreshes, and failures with their reasons',
    )
    .argument('<name>', CONNECTION_NAME)
    .option('--json', 'print JSON')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const entries = await hub.request('history', { name });
      if (options.json === true)
        printJson(entries.map((entry) => ({ ...entry, why: entry.why && publicReason(entry.why) })));
      else if (entries.length === 0) print(emptyHistoryText(name));
      else print(alignColumns([['WHEN', 'TIMES', 'WHAT'], ...entries.map(historyRow)]));
    });
}

const KIND_TEXTS = {
  paired: 'paired',
  unpaired: 'unpaired',
  refreshed: 'refreshed',
  token_refused: 'the portal rejected its token',
  pairing_failed: 'not paired',
  refresh_failed: 'not refreshed',
} as const satisfies Record<HistoryEntry['kind'], string>;

/** Short texts: why an appliance was not connected, or its token not refreshed. */
export const SHORT_REASONS: Readonly<Record<SkipReason | ProblemCode, string>> = {
  refused_by_user: 'refused at the login',
  expired: 'nobody logged in',
  replaced: 'a newer pairing replaced it',
  cancelled: 'cancelled',
  portal_rejected: 'the portal rejected it',
  foreign_origin: 'the portal gave wrong addresses',
  code_refused: 'the portal rejected the login',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'wrong portal settings',
  client_unknown: 'the portal does not know the hub',
  waiting_for_approval: 'waiting for approval',
  not_begun: 'not started',
  portal_unreachable: 'the portal was unreachable',
  portal_deferred: 'the portal asked to wait',
  clock_unknown: 'the clock was wrong',
  store_unwritable: 'the hub could not save it',
  database_unavailable: 'the hub could not reach its database',
  refused: 'the portal rejected the grant',
};

function emptyHistoryText(name: string): string {
  return `There is no history of ${name} yet. If it is not paired: latchkey pair ${nameFromTitle(name)}`;
}

function historyRow(entry: HistoryEntry): string[] {
  return [formatTimeSpan(entry), entry.count === 1 ? '' : `×${entry.count}`, entryText(entry)];
}

function entryText({ kind, why, user }: HistoryEntry): string {
  const text = why === null ? KIND_TEXTS[kind] : `${KIND_TEXTS[kind]}: ${SHORT_REASONS[why]}`;
  return user === undefined ? text : `${text}, by ${user}`;
}

/** Local time, such as `2026-11-22 07:14 – 23:50`. An end that is earlier than the start is on the next day. */
function formatTimeSpan({ first, last }: HistoryEntry): string {
  const [from, to] = [localTime(first), localTime(last)];
  const start = `${from.day} ${from.time}`;
  if (Date.parse(last) - Date.parse(first) >= DAY) return `${start} – ${to.day} ${to.time}`;
  return start === `${to.day} ${to.time}` ? start : `${start} – ${to.time}`;
}

/** @param instant RFC 3339 */
function localTime(instant: string): { readonly day: string; readonly time: string } {
  const date = new Date(instant);
  const twoDigits = (number: number) => String(number).padStart(2, '0');
  return {
    day: `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`,
    time: `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`,
  };
}
