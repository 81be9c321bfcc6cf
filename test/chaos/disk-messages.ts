import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HubProcess } from '../support/hub-process.ts';

/** The events that a hub may log at the levels `warn` and `error` while its disk has a fault. */
const ALLOWED = new Set([
  'answer_lost',
  'refresh_failed',
  'refresh_interrupted',
  'refresh_superseded',
  'store_unwritable',
  // Small disks are in memory.
  'store_volatile',
  'snapshot_failed',
  'store_reopen_failed',
  'grant_damaged',
  'control_socket_failed',
  'notice',
  'notices_not_stored',
  'history_write_failed',
  'usage_write_failed',
]);

/** The `detail` of `store_recovered`. */
const RECOVERED =
  /^the store \S+latchkey\.db (was missing, as after a restore of a backup that leaves it out; it was made again from the snapshot of \S+|(was damaged|can't be read) \([\s\S]+\)( and is kept as \S+)?; it was replaced by what could be read of it( and of the snapshot of \S+)?)(; |$)/;

/** Ends a daemon. @returns its log */
export async function stopAndReadLog(hub: HubProcess, signal: NodeJS.Signals): Promise<string> {
  await hub.kill(signal);
  // The last lines may not have reached the file yet.
  await sleep(100);
  return readFileSync(hub.log, 'utf8');
}

/** One sentence for each unexpected line of a daemon's log: stack traces and unknown problems. */
export function unexpectedLines(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => line !== '' && !isExpected(line))
    .map((line) => `the hub logged: ${line.slice(0, 300)}`);
}

function isExpected(line: string): boolean {
  const { level, event, detail, problem } = parse(line);
  if (level === 'info' || level === 'debug') return true;
  if (event === 'store_recovered') return RECOVERED.test(String(detail));
  return ALLOWED.has(String(event)) && problem !== 'refused';
}

function parse(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
}
