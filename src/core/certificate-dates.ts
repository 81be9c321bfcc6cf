import { type ConfirmedTime, type Instant, rfc3339, trueTime } from './clock.ts';

/** What a portal's certificate was refused for, where its dates were the reason. */
export type CertificateDates = 'not_yet_valid' | 'expired';

/** A clock that is off by less than this, in ms, is not what a certificate is refused for. */
const RIGHT = 300_000;

/**
 * Why a portal's certificate was refused, in words for people, where the hub's own clock may be the reason: nothing has
 * confirmed it, or it is known to be wrong. Null where the clock is right, and the certificate itself must be at fault.
 */
export function clockAtFault(dates: CertificateDates, now: Instant, confirmed: ConfirmedTime | null): string | null {
  const time = trueTime(confirmed, now);
  if (time !== null && Math.abs(time - now.wall) < RIGHT) return null;
  const known = time === null ? 'and nothing has confirmed it yet' : `but it is ${rfc3339(time)}`;
  const refused = dates === 'expired' ? 'has expired' : 'is not valid yet';
  return `The hub's clock says ${rfc3339(now.wall)}, ${known}: by it the portal's certificate ${refused}. The hub goes on by itself as soon as the clock is set`;
}
