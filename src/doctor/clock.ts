import { rfc3339 } from '../core/clock.ts';
import { systemClock } from '../system/clock.ts';
import { ntpWatch } from '../system/ntp.ts';
import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** No hub of this version runs earlier. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** How far the clock may be off the portal's, in ms, and from when on certificates and assertions fail. */
const TOLERATED = 10_000;
const HARMFUL = 300_000;

const SET_IT = 'let it be set ("timedatectl status"; "sudo timedatectl set-ntp true")';

/** Whether the clock is plausible, set by NTP, and like the portal's. */
export async function checkClock({ reaches, wall }: Subject): Promise<Said[]> {
  const now = wall();
  if (now < EARLIEST) return [fail(`the clock says ${rfc3339(now)}, which can't be: ${SET_IT}`)];
  const [isSet, answers] = await Promise.all([ntpWatch()(systemClock('').now()), reaches]);
  const ahead = answers.flatMap(({ outcome, origin }) =>
    outcome.kind === 'answered' && outcome.clockAhead !== null ? [{ by: outcome.clockAhead, origin }] : [],
  )[0];
  const ntp = isSet ? 'NTP has set it' : 'that NTP has set it since the machine was started could not be seen';
  if (ahead === undefined) {
    const untold = 'no portal could be asked for the time';
    if (isSet) return [ok(`the clock says ${rfc3339(now)}; ${ntp}; ${untold}`)];
    return [warn(`the clock says ${rfc3339(now)}; ${ntp}, and ${untold}: ${SET_IT}`)];
  }
  const off = Math.abs(ahead.by);
  const by = `${Math.round(off / 1000)} s ${ahead.by > 0 ? 'ahead of' : 'behind'} ${ahead.origin}`;
  if (off > HARMFUL) return [fail(`the clock says ${rfc3339(now)}, ${by}: ${SET_IT}`)];
  if (off > TOLERATED) return [warn(`the clock is ${by}: ${SET_IT}`)];
  return [ok(`the clock goes with ${ahead.origin}'s; ${ntp}`)];
}
