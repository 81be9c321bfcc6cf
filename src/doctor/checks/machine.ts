import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { rfc3339 } from '../../core/clock.ts';
import { systemClock } from '../../system/clock.ts';
import { ntpWatch } from '../../system/ntp.ts';
import { type CheckResult, fail, needsRoot, ok, warn } from '../check-result.ts';
import { type DoctorContext, isKnown, isTestMode } from '../context.ts';
import { outputOf } from '../programs.ts';

/** No hub of this version runs earlier. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** How far the clock may be off the portal's, in ms, and from when on certificates and assertions fail. */
const WARN_ABOVE = 10_000;
const FAIL_ABOVE = 300_000;

/** How long systemd-timedated may take, in ms. */
const TIMEDATED_TIMEOUT = 3000;

/** What sets the clock, as far as the machine has it. */
async function howToSet(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['show', '--property=CanNTP', '--property=NTP'];
  const text = await outputOf('timedatectl', args, AbortSignal.timeout(TIMEDATED_TIMEOUT), env);
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
  const watched = ntpWatch()(systemClock('').now());
  const [how, isSet, answers] = await Promise.all([howToSet(env), watched, probes]);
  if (now < EARLIEST) return [fail(`the clock says ${rfc3339(now)}, which can't be: ${how}`)];
  if (isTestMode(hub))
    return [ok(`the clock says ${rfc3339(now)}, and so does the emulated portal's: both are this machine's`)];
  const ahead = answers.flatMap(({ outcome, origin }) =>
    outcome.kind === 'answered' && outcome.clockAhead !== null ? [{ by: outcome.clockAhead, origin }] : [],
  )[0];
  const ntp = isSet ? 'NTP has set it' : 'whether NTP has set it is not known';
  if (ahead === undefined) {
    const what = `the clock says ${rfc3339(now)}; ${ntp}, and no portal has told the time`;
    return [isSet ? ok(what) : warn(`${what}: ${how}`)];
  }
  const off = Math.abs(ahead.by);
  const by = `${Math.round(off / 1000)} s ${ahead.by > 0 ? 'ahead of' : 'behind'} ${ahead.origin}`;
  if (off > FAIL_ABOVE) return [fail(`the clock says ${rfc3339(now)}, ${by}: ${how}`)];
  if (off > WARN_ABOVE) return [warn(`the clock is ${by}: ${how}`)];
  return [ok(`the clock agrees with ${ahead.origin}'s; ${ntp}`)];
}

const MIB = 1 << 20;
/** Free MiB below which a refresh may not be written, and below which it is soon so. */
const TOO_LITTLE = 8;
const LITTLE = 50;
const FEW_FILES = 100;

/** Whether there is room where the hub writes. */
export async function checkDisk(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  const isThere = isKnown(context, 'hub.state_dir') && !isTestMode(hub);
  const state = isThere
    ? [{ ...(await place('hub.state_dir', configuration.stateDirectory, fail)), name: '.state' }]
    : [];
  return [...state, { ...(await place('temporary files', tmpdir(), warn)), name: '.tmp' }];
}

async function place(what: string, path: string, gone: typeof fail): Promise<CheckResult> {
  const named = `${path} (${what})`;
  const found = await statfs(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'ENOENT' && path !== '/') return place(what, dirname(path), gone);
  if (typeof found === 'string')
    return found === 'EACCES' ? needsRoot(named) : fail(`${named} can't be read (${found}): see to the disk`);
  const readOnly = await access(path, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (readOnly)
    return gone(
      `${named} is read-only: mount it for writing; where the system did that by itself, the disk may be dying`,
    );
  const free = Math.floor((found.bavail * found.bsize) / MIB);
  if (free < TOO_LITTLE) return gone(`${named} has ${free} MiB left: make room`);
  // Some file systems have no fixed number of files, and say 0 of 0.
  if (found.files > 0 && found.ffree < FEW_FILES)
    return gone(`${named} has room for ${found.ffree} files more: delete some`);
  if (free < LITTLE) return warn(`${named} has ${free} MiB left: make room soon`);
  return ok(`${named} has ${free} MiB left`);
}

const JOURNAL = '"sudo journalctl -u latchkey -n 20 --no-pager" says why';

/** Whether systemd runs the hub, will do so at the next boot, and had to start it again. */
export async function checkService({ unit }: Pick<DoctorContext, 'unit'>): Promise<CheckResult[]> {
  if (unit === null) return [ok('the hub is no service of systemd: nothing to look at')];
  const { state, enabled, result, exitStatus, restarts } = unit;
  if (state === 'failed' || (state === 'activating' && result !== 'success')) {
    return [
      fail(
        `latchkey.service does not run (${result}, exit status ${exitStatus}): ${JOURNAL}; then "sudo systemctl restart latchkey"`,
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
      warn(`latchkey.service was started again ${restarts === 1 ? 'once' : `${restarts} times`}${last}: ${JOURNAL}`),
    ];
  }
  return [ok('latchkey.service is active, and starts with the machine')];
}
