import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { rfc3339 } from '../../core/clock.ts';
import { systemClock } from '../../system/clock.ts';
import { createNtpCheck } from '../../system/ntp.ts';
import { type CheckResult, fail, ok, permissionDenied, warn } from '../check-result.ts';
import { type DoctorContext, hasValidKey, isTestMode } from '../context.ts';
import { execProgram } from '../systemd-unit.ts';

/** No hub of this version runs earlier. */
const EARLIEST_PLAUSIBLE_TIME = Date.UTC(2026, 0, 1);
/** How far the clock may be off the portal's, in ms, and from when on certificates and assertions fail. */
const CLOCK_WARNING_OFFSET_MS = 10_000;
const CLOCK_FAILURE_OFFSET_MS = 300_000;

/** How long systemd-timedated may take, in ms. */
const TIMEDATED_TIMEOUT = 3000;

/** What sets the clock, as far as the machine has it. */
async function clockAdvice(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['show', '--property=CanNTP', '--property=NTP'];
  const text = await execProgram('timedatectl', args, AbortSignal.timeout(TIMEDATED_TIMEOUT), env);
  const says = (line: string) => (text ?? '').split('\n').includes(line);
  if (says('CanNTP=no'))
    return 'nothing on this machine sets it: install an NTP service ("sudo apt-get install systemd-timesyncd")';
  if (says('NTP=yes')) return 'NTP is turned on: check the way to its servers (UDP port 123; "timedatectl status")';
  if (says('CanNTP=yes')) return 'turn NTP on ("sudo timedatectl set-ntp true")';
  return 'check what sets it here (chrony, ntpd, or the host of a container): timedatectl knows of nothing';
}

/** Whether the clock is plausible, set by NTP, and like the portal's. */
export async function checkClock({ hub, probes, wall, env }: DoctorContext): Promise<CheckResult[]> {
  const now = wall();
  const watched = createNtpCheck()(systemClock('').now());
  const [how, isSet, answers] = await Promise.all([clockAdvice(env), watched, probes]);
  if (now < EARLIEST_PLAUSIBLE_TIME) return [fail(`the clock says ${rfc3339(now)}, which can't be: ${how}`)];
  if (isTestMode(hub))
    return [ok(`the clock says ${rfc3339(now)}, and so does the emulated portal's: both are this machine's`)];
  const ahead = answers.flatMap(({ outcome, origin }) =>
    outcome.kind === 'answered' && outcome.clockAheadMs !== null ? [{ by: outcome.clockAheadMs, origin }] : [],
  )[0];
  const ntp = isSet ? 'NTP has set it' : 'whether NTP has set it is not known';
  if (ahead === undefined) {
    const what = `the clock says ${rfc3339(now)}; ${ntp}, and no portal has told the time`;
    return [isSet ? ok(what) : warn(`${what}: ${how}`)];
  }
  const off = Math.abs(ahead.by);
  const by = `${Math.round(off / 1000)} s ${ahead.by > 0 ? 'ahead of' : 'behind'} ${ahead.origin}`;
  if (off > CLOCK_FAILURE_OFFSET_MS) return [fail(`the clock says ${rfc3339(now)}, ${by}: ${how}`)];
  if (off > CLOCK_WARNING_OFFSET_MS) return [warn(`the clock is ${by}: ${how}`)];
  return [ok(`the clock agrees with ${ahead.origin}'s; ${ntp}`)];
}

const MIB = 1 << 20;
/** Free MiB below which a refresh may not be written, and below which it is soon so. */
const MIN_FREE_MIB = 8;
const LOW_FREE_MIB = 50;
const MIN_FREE_INODES = 100;

/** Whether there is room where the hub writes. */
export async function checkDisk(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  const isThere = hasValidKey(context, 'hub.state_dir') && !isTestMode(hub);
  const state = isThere
    ? [{ ...(await checkFileSystem('hub.state_dir', configuration.stateDirectory, fail)), name: '.state' }]
    : [];
  return [...state, { ...(await checkFileSystem('temporary files', tmpdir(), warn)), name: '.tmp' }];
}

async function checkFileSystem(what: string, path: string, gone: typeof fail): Promise<CheckResult> {
  const named = `${path} (${what})`;
  const found = await statfs(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'ENOENT' && path !== '/') return checkFileSystem(what, dirname(path), gone);
  if (typeof found === 'string')
    return found === 'EACCES' ? permissionDenied(named) : fail(`${named} can't be read (${found}): see to the disk`);
  const readOnly = await access(path, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (readOnly)
    return gone(
      `${named} is read-only: mount it for writing; where the system did that by itself, the disk may be dying`,
    );
  const free = Math.floor((found.bavail * found.bsize) / MIB);
  if (free < MIN_FREE_MIB) return gone(`${named} has ${free} MiB left: make room`);
  // Some file systems have no fixed number of files, and say 0 of 0.
  if (found.files > 0 && found.ffree < MIN_FREE_INODES)
    return gone(`${named} has room for ${found.ffree} files more: delete some`);
  if (free < LOW_FREE_MIB) return warn(`${named} has ${free} MiB left: make room soon`);
  return ok(`${named} has ${free} MiB left`);
}

const JOURNAL_HINT = '"sudo journalctl -u latchkey -n 20 --no-pager" says why';

/** Whether systemd runs the hub, will do so at the next boot, and had to start it again. */
export async function checkService({ unit }: Pick<DoctorContext, 'unit'>): Promise<CheckResult[]> {
  if (unit === null) return [ok('the hub is no service of systemd: nothing to look at')];
  const { activeState: state, unitFileState: enabled, result, exitStatus, restarts } = unit;
  if (state === 'failed' || (state === 'activating' && result !== 'success')) {
    return [
      fail(
        `latchkey.service does not run (${result}, exit status ${exitStatus}): ${JOURNAL_HINT}; then "sudo systemctl restart latchkey"`,
      ),
    ];
  }
  if (state !== 'active' && state !== 'reloading') {
    return [fail(`latchkey.service is ${state}: "sudo systemctl start latchkey"`)];
  }
  if (enabled !== 'enabled') {
    return [warn(`latchkey.service is ${enabled}, and won't start with the machine: "sudo systemctl enable latchkey"`)];
  }
  if (restarts > 0) {
    const last = result === 'watchdog' ? ', because its watchdog ended it' : '';
    return [
      warn(
        `latchkey.service was started again ${restarts === 1 ? 'once' : `${restarts} times`}${last}: ${JOURNAL_HINT}`,
      ),
    ];
  }
  return [ok('latchkey.service is active, and starts with the machine')];
}
