import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { CLOCK_FAILURE_OFFSET, CLOCK_WARNING_OFFSET, formatDuration, rfc3339 } from '../../core/clock.ts';
import { describeVolatileState } from '../../store/state-directory.ts';
import { systemClock } from '../../system/clock.ts';
import { isInContainer } from '../../system/container.ts';
import { createNtpCheck } from '../../system/ntp.ts';
import { type CheckResult, type CheckResults, fail, ok, permissionDenied, warn } from '../check-result.ts';
import { type DoctorContext, isConfigurationKeyValid, isTestMode } from '../context.ts';
import { execProgram } from '../systemd-unit.ts';

/** This version of Latchkey is newer than this time, so an earlier clock is wrong. */
const EARLIEST_PLAUSIBLE_TIME = Date.UTC(2026, 0, 1);

/** How long systemd-timedated may take, in ms. */
const TIMEDATED_TIMEOUT = 3000;

/** What to do about a wrong clock on this machine. */
async function clockAdvice(env: NodeJS.ProcessEnv): Promise<string> {
  if (isInContainer(env)) return 'the clock is that of the host: check there what sets it ("timedatectl")';
  const args = ['show', '--property=CanNTP', '--property=NTP'];
  const text = await execProgram('timedatectl', args, AbortSignal.timeout(TIMEDATED_TIMEOUT), env);
  const hasLine = (line: string) => (text ?? '').split('\n').includes(line);
  if (hasLine('CanNTP=no'))
    return 'nothing sets the clock of this machine: install an NTP service ("sudo apt-get install systemd-timesyncd")';
  if (hasLine('NTP=yes'))
    return 'NTP is on: check that no firewall or router blocks its servers (UDP port 123; "timedatectl status")';
  if (hasLine('CanNTP=yes')) return 'turn NTP on ("sudo timedatectl set-ntp true")';
  return 'find out what sets the clock here (chrony, ntpd, or the host of a container): timedatectl shows no service';
}

/** Checks whether the clock is plausible, set by NTP, and equal to the portal's. */
export async function checkClock({ hub, probes, wall, env }: DoctorContext): Promise<CheckResults> {
  const now = wall();
  const ntpCheck = createNtpCheck()(systemClock('').now());
  const [advice, isSet, portalProbes] = await Promise.all([clockAdvice(env), ntpCheck, probes]);
  if (now < EARLIEST_PLAUSIBLE_TIME) return fail(`the clock is wrong, it says ${rfc3339(now)}: ${advice}`);
  if (isTestMode(hub))
    return ok(`the clock says ${rfc3339(now)}; in test mode there is no other portal to compare it with`);
  // The clock of one portal may be wrong.
  const [ahead] = portalProbes
    .flatMap(({ outcome, origin }) =>
      outcome.kind === 'answered' && outcome.clockAheadMs !== null ? [{ by: outcome.clockAheadMs, origin }] : [],
    )
    .sort((one, other) => Math.abs(one.by) - Math.abs(other.by));
  const unknown = `it is not known whether NTP has set it${isInContainer(env) ? ", which a container can't see" : ''}`;
  const ntp = isSet ? 'NTP has set it' : unknown;
  if (ahead === undefined) {
    const text = `the clock says ${rfc3339(now)}; ${ntp}, and no portal has reported the time`;
    return isSet ? ok(text) : warn(`${text}: ${advice}`);
  }
  const off = Math.abs(ahead.by);
  const by = `${formatDuration(off / 1000)} ${ahead.by > 0 ? 'ahead of' : 'behind'} ${ahead.origin}`;
  if (isSet && off > CLOCK_WARNING_OFFSET)
    return warn(`NTP has set the clock, so that of the portal is wrong: this one is ${by}; the hub goes by NTP`);
  if (off > CLOCK_FAILURE_OFFSET) return fail(`the clock says ${rfc3339(now)}, ${by}: ${advice}`);
  if (off > CLOCK_WARNING_OFFSET) return warn(`the clock is ${by}: ${advice}`);
  return ok(`the clock agrees with ${ahead.origin}; ${ntp}`);
}

const MIB = 1 << 20;
/** Free MiB below which the hub may be unable to save a refresh, and below which a warning is due. */
const MIN_FREE_MIB = 8;
const LOW_FREE_MIB = 50;
const MIN_FREE_INODES = 100;

/** Checks the free space where the hub writes. */
export async function checkDisk(context: DoctorContext): Promise<CheckResults> {
  const { configuration, env, hub } = context;
  const hasStateDirectory = isConfigurationKeyValid(context, 'hub.state_dir') && !isTestMode(hub);
  const { stateDirectory } = configuration;
  const state = hasStateDirectory ? [{ ...(await checkStateDirectory(stateDirectory, env)), name: '.state' }] : [];
  return [...state, { ...(await checkFileSystem('temporary files', tmpdir(), warn, env)), name: '.tmp' }];
}

async function checkStateDirectory(path: string, env: NodeJS.ProcessEnv): Promise<CheckResult> {
  const writable = await checkFileSystem('hub.state_dir', path, fail, env);
  // In a container the hub refuses to start without a volume.
  if (writable.result !== 'ok' || isInContainer(env)) return writable;
  const volatile = await describeVolatileState(path);
  return volatile === null ? writable : warn(`${volatile}: nothing in it outlives a reboot (docs/state.md)`);
}

/** @param severity the result if nothing can be written */
async function checkFileSystem(
  purpose: string,
  path: string,
  severity: typeof fail,
  env: NodeJS.ProcessEnv,
): Promise<CheckResult> {
  const subject = `${path} (${purpose})`;
  const found = await statfs(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'ENOENT' && path !== '/') return checkFileSystem(purpose, dirname(path), severity, env);
  if (typeof found === 'string')
    return found === 'EACCES'
      ? permissionDenied(subject)
      : fail(`${subject} can't be read (${found}): check the disk or the SD card`);
  const readOnly = await access(path, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (readOnly && isInContainer(env))
    return severity(
      `${subject} is read-only in this container: mount a volume there ("--volume"), without the option "ro"`,
    );
  if (readOnly)
    return severity(
      `${subject} is mounted read-only: make it writable again ("mount -o remount,rw"); if the system did that itself, the disk or the SD card may be failing: make a backup and replace it`,
    );
  const free = Math.floor((found.bavail * found.bsize) / MIB);
  if (free < MIN_FREE_MIB) return severity(`${subject} has ${free} MiB left: free some space`);
  // Some file systems have no fixed number of files, and report 0 of 0.
  if (found.files > 0 && found.ffree < MIN_FREE_INODES)
    return severity(
      `${subject} has too many files, only ${found.ffree} more are possible: delete files that are no longer needed, but none of the hub's own`,
    );
  if (free < LOW_FREE_MIB) return warn(`${subject} has ${free} MiB left: free some space soon`);
  return ok(`${subject} has ${free} MiB left`);
}

/** systemd's exit statuses for a user or mount namespace that can't be set up (systemd.exec(5)). */
const NAMESPACE_STATUSES = [217, 226];
/** It also says that the unit names a user that does not exist. */
const USER_STATUS = 217;
const NAMESPACE_ADVICE =
  'in an LXC container turn on nesting ("pct set ID --features nesting=1" on a Proxmox host), or use the drop-in /usr/lib/latchkey/without-namespaces.conf (docs/deploy.md, "In an LXC container")';

const JOURNAL_HINT = '"sudo journalctl -u latchkey -n 20 --no-pager" says why';

/** Checks whether systemd runs the hub, starts it at boot, and had to restart it. */
export async function checkService({ unit, env }: Pick<DoctorContext, 'unit' | 'env'>): Promise<CheckResults> {
  if (unit === null && isInContainer(env))
    return ok('the hub runs in a container: its engine starts and restarts it ("--restart")');
  if (unit === null) return ok('the hub is not a systemd service: nothing to check');
  const { activeState: state, unitFileState: enabled, result, exitStatus, restarts } = unit;
  const isDown = state === 'failed' || (state === 'activating' && result !== 'success');
  if (isDown && NAMESPACE_STATUSES.includes(exitStatus)) {
    const orNoUser = exitStatus === USER_STATUS ? ', or has no user for it' : '';
    const why = `this machine does not let systemd set up the sandbox of latchkey.service${orNoUser} (exit status ${exitStatus})`;
    return fail(`${why}: ${NAMESPACE_ADVICE}`);
  }
  if (isDown) {
    return fail(
      `latchkey.service is not running (${result}, exit status ${exitStatus}): ${JOURNAL_HINT}; then "sudo systemctl restart latchkey"`,
    );
  }
  if (state !== 'active' && state !== 'reloading') {
    return fail(`latchkey.service is ${state}: "sudo systemctl start latchkey"`);
  }
  if (enabled !== 'enabled') {
    return warn(`latchkey.service is ${enabled} and won't start with the machine: "sudo systemctl enable latchkey"`);
  }
  if (restarts > 0) {
    const reason = result === 'watchdog' ? ', because it no longer responded (watchdog)' : '';
    return warn(
      `latchkey.service was restarted ${restarts === 1 ? 'once' : `${restarts} times`}${reason}: ${JOURNAL_HINT}`,
    );
  }
  return ok('latchkey.service is active and starts with the machine');
}
