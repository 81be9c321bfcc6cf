import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Instant } from '../core/clock.ts';

const run = promisify(execFile);

/** systemd-timesyncd touches this file whenever it has set the clock (systemd.special(7), `time-sync.target`). */
const TIMESYNCD_FILE = '/run/systemd/timesync/synchronized';
/** For other programs (chrony, ntpd): systemd-timedated reports whether the kernel's clock is synchronized. */
const TIMEDATECTL_ARGUMENTS = ['show', '--property=NTPSynchronized', '--value'];
/** Delays between runs of the program, in ms: each is twice the last one. They start again after the clock was set. */
const PROGRAM_BACKOFF = { first: 60_000, max: 600_000 };
/** In ms. */
const PROGRAM_TIMEOUT = 5000;
/** A clock before this time is wrong, because this version did not exist then. In ms since 1970. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** Permitted difference between a file's time and the clock, in ms. */
const TOLERANCE = 2000;

/**
 * Checks whether NTP has set this machine's wall clock in this boot; false if that is unknown.
 * @returns the check; it takes the current time, and whether the clock was set since the last check
 */
export function createNtpCheck(
  file = TIMESYNCD_FILE,
  program = 'timedatectl',
): (now: Instant, wasSet?: boolean) => Promise<boolean> {
  let nextProgram = 0;
  let backoff = PROGRAM_BACKOFF.first;
  return async (now, wasSet = false) => {
    if (now.wall < EARLIEST) return false;
    if (touchedInThisBoot(file, now)) return true;
    if (wasSet) [nextProgram, backoff] = [0, PROGRAM_BACKOFF.first];
    if (now.uptime < nextProgram) return false;
    nextProgram = now.uptime + backoff;
    backoff = Math.min(2 * backoff, PROGRAM_BACKOFF.max);
    const result = await run(program, TIMEDATECTL_ARGUMENTS, { timeout: PROGRAM_TIMEOUT }).catch(
      (error: { code?: unknown }) => {
        if (error.code === 'ENOENT') nextProgram = Number.POSITIVE_INFINITY;
        return null;
      },
    );
    return result?.stdout.trim() === 'yes';
  };
}

/**
 * Whether the file's time is within this boot. If something else has set the clock since, it no longer is. The call is
 * synchronous, because the file is in memory and needs no other thread.
 */
function touchedInThisBoot(file: string, { wall, uptime }: Instant): boolean {
  const touched = statSync(file, { throwIfNoEntry: false });
  return touched !== undefined && touched.mtimeMs <= wall + TOLERANCE && touched.mtimeMs >= wall - uptime - TOLERANCE;
}
