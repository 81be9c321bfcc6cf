import { Command } from 'commander';
import type { HistoryEntry } from '../core/history.ts';
import { connectHub } from './hub-connection.ts';
import { print, printJson } from './output.ts';
import { alignColumns } from './table.ts';

/** `latchkey history NAME` */
export function historyCommand(): Command {
  return new Command('history')
    .description('show what happened to an appliance: pairings, refreshes, failures and why; the newest first')
    .argument('<name>', "the appliance's name")
    .option('--json', 'print JSON')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const entries = await hub.history(name);
      if (options.json === true) printJson(entries);
      else if (entries.length === 0) print(nothingYet(name));
      else print(alignColumns([['WHEN', 'TIMES', 'WHAT'], ...entries.map(row)]));
    });
}

const DAY = 86_400_000;

const WHAT = {
  paired: 'paired',
  unpaired: 'unpaired',
  refreshed: 'refreshed',
  token_refused: 'the cloud refused its token',
} as const;

const WHY_NOT_PAIRED: Readonly<Record<string, string>> = {
  refused_by_user: 'the login was refused',
  expired: 'nobody logged in in time',
  replaced: 'another one was begun',
  cancelled: 'it was cancelled',
  portal_rejected: 'the portal rejected it',
  foreign_origin: "the portal's links lead elsewhere",
  code_refused: 'the portal refused the code',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'the hub is misconfigured',
};

const WHY_NOT_REFRESHED: Readonly<Record<string, string>> = {
  portal_unreachable: 'the portal was out of reach',
  portal_deferred: 'the portal asked to wait',
  portal_rejected: 'the portal rejected it',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'the hub is misconfigured',
  clock_unknown: 'the clock was wrong',
  store_unwritable: 'the store could not be written',
  refused: 'the portal refused the grant',
};

function nothingYet(name: string): string {
  return `Nothing is remembered of ${name} yet. If it is not paired: latchkey pair ${name}`;
}

function row(entry: HistoryEntry): string[] {
  return [spanOf(entry), entry.count === 1 ? '' : `×${entry.count}`, what(entry)];
}

function what({ kind, why }: HistoryEntry): string {
  const reason = why ?? '';
  if (kind === 'pairing_failed') return `not paired: ${WHY_NOT_PAIRED[reason] ?? reason}`;
  if (kind === 'refresh_failed') return `not refreshed: ${WHY_NOT_REFRESHED[reason] ?? reason}`;
  return WHAT[kind];
}

/** Local time, such as `2026-11-22 07:14 – 23:50`; where it ends at an earlier hour, that is the next day's. */
function spanOf({ first, last }: HistoryEntry): string {
  const [begun, ended] = [local(first), local(last)];
  const start = `${begun.day} ${begun.time}`;
  if (Date.parse(last) - Date.parse(first) >= DAY) return `${start} – ${ended.day} ${ended.time}`;
  return start === `${ended.day} ${ended.time}` ? start : `${start} – ${ended.time}`;
}

/** @param instant RFC 3339 */
function local(instant: string): { readonly day: string; readonly time: string } {
  const date = new Date(instant);
  const two = (number: number) => String(number).padStart(2, '0');
  return {
    day: `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
    time: `${two(date.getHours())}:${two(date.getMinutes())}`,
  };
}
