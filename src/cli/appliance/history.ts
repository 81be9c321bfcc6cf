import { Command } from 'commander';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import { connectHub } from '../hub-connection.ts';
import { SHORT_REASONS } from '../pair/failure-texts.ts';
import { print, printJson } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';

/** `latchkey history NAME` */
export function historyCommand(): Command {
  return new Command('history')
    .description('show what happened to an appliance: pairings, refreshes, failures and why; the newest first')
    .argument('<name>', "the appliance's name")
    .option('--json', 'print JSON')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const entries = await hub.history(name);
      if (options.json === true)
        printJson(entries.map((entry) => ({ ...entry, why: entry.why && publicReason(entry.why) })));
      else if (entries.length === 0) print(emptyHistoryText(name));
      else print(alignColumns([['WHEN', 'TIMES', 'WHAT'], ...entries.map(historyRow)]));
    });
}

const DAY_MS = 86_400_000;

const KIND_TEXTS = {
  paired: 'paired',
  unpaired: 'unpaired',
  refreshed: 'refreshed',
  token_refused: 'the cloud refused its token',
  pairing_failed: 'not paired',
  refresh_failed: 'not refreshed',
} as const satisfies Record<HistoryEntry['kind'], string>;

function emptyHistoryText(name: string): string {
  return `Nothing is remembered of ${name} yet. If it is not paired: latchkey pair ${name}`;
}

function historyRow(entry: HistoryEntry): string[] {
  return [formatTimeSpan(entry), entry.count === 1 ? '' : `×${entry.count}`, entryText(entry)];
}

function entryText({ kind, why }: HistoryEntry): string {
  return why === null ? KIND_TEXTS[kind] : `${KIND_TEXTS[kind]}: ${SHORT_REASONS[why]}`;
}

/** Local time, such as `2026-11-22 07:14 – 23:50`; where it ends at an earlier hour, that is the next day's. */
function formatTimeSpan({ first, last }: HistoryEntry): string {
  const [begun, ended] = [localTime(first), localTime(last)];
  const start = `${begun.day} ${begun.time}`;
  if (Date.parse(last) - Date.parse(first) >= DAY_MS) return `${start} – ${ended.day} ${ended.time}`;
  return start === `${ended.day} ${ended.time}` ? start : `${start} – ${ended.time}`;
}

/** @param instant RFC 3339 */
function localTime(instant: string): { readonly day: string; readonly time: string } {
  const date = new Date(instant);
  const two = (number: number) => String(number).padStart(2, '0');
  return {
    day: `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
    time: `${two(date.getHours())}:${two(date.getMinutes())}`,
  };
}
