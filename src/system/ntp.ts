import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Instant } from '../core/clock.ts';

const run = promisify(execFile);

/** Touched by systemd-timesyncd whenever it has set the clock (systemd.special(7), `time-sync.target`). */
const TIMESYNCD_FILE = '/run/systemd/timesync/synchronized';
/** Other programs (chrony, ntpd) are asked for through systemd-timedated, which looks at the kernel's own word for it. */
const TIMEDATECTL_ARGUMENTS = ['show', '--property=NTPSynchronized', '--value'];
/** A program is started again after so long, then after twice as long each time, in ms; anew where the clock was set. */
const PROGRAM_BACKOFF = { first: 60_000, longest: 600_000 };
const PROGRAM_TIMEOUT = 5000;
/** No hub of this version runs earlier, whatever its clock says. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** A file's time and the clock may lie this far apart, in ms. */
const TOLERANCE = 2000;

/**
 * Tells whether NTP has set this machine's wall clock in this boot. False also where that can't be known.
 * @returns a function to be asked with the present time, and whether the clock was set since it was asked last
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
    backoff = Math.min(2 * backoff, PROGRAM_BACKOFF.longest);
    const answer = await run(program, TIMEDATECTL_ARGUMENTS, { timeout: PROGRAM_TIMEOUT }).catch(
      (error: { code?: unknown }) => {
        if (error.code === 'ENOENT') nextProgram = Number.POSITIVE_INFINITY;
        return null;
      },
    );
    return answer?.stdout.trim() === 'yes';
  };
}

/**
 * Where the clock was set by other means since, the file's time does not lie in this boot by it any more. The file is in
 * memory: asked at once, it wakes up no other thread.
 */
function touchedInThisBoot(file: string, { wall, uptime }: Instant): boolean {
  const touched = statSync(file, { throwIfNoEntry: false });
  return touched !== undefined && touched.mtimeMs <= wall + TOLERANCE && touched.mtimeMs >= wall - uptime - TOLERANCE;
}
