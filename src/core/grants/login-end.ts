import { type ConfirmedTime, DAY, type Instant } from '../clock.ts';
import { ageOf, type Grant, type Login } from './grant.ts';

/** When logins at a portal end by themselves, according to its configuration; in ms, null if it does not say. */
export interface LoginLimits {
  /** A login ends this long after the person logged in, whatever happens. */
  readonly loginLifetime: number | null;
  /** A refresh token that was not used for this long is no longer valid. */
  readonly idleLifetime: number | null;
}

/** When a login ends by itself; times in ms. */
export interface LoginEnd {
  /** How long it is until then; negative if it is over. */
  readonly remaining: number;
  /** The end by the clock that the hub had when the login or the last refresh was made, in ms since 1970. */
  readonly recorded: number;
  /** A person is reminded when no more than this is left. */
  readonly reminder: number;
}

/** A person is reminded when a quarter of a lifetime is left, between these limits. */
const [MIN_REMINDER, MAX_REMINDER] = [DAY, 14 * DAY];
/** A refresh token with less than this part of its whole lifetime has an end that refreshes do not put off. */
const SHRUNK_SHARE = 0.98;
/** The portal may have counted from a little earlier than the hub, in ms. */
const END_TOLERANCE = 60_000;

/**
 * When the login of a grant ends by itself, although the hub refreshes it: the earliest end that the configuration, or
 * the portal in its responses, gives; one that each refresh puts off does not count. Null if there is none, or if the age
 * of the login is not known yet. Without a refresh token it is the end of the access token, and a person is reminded at
 * once.
 */
export function loginEnd(
  grant: Grant,
  limits: LoginLimits,
  now: Instant,
  confirmed: ConfirmedTime | null,
): LoginEnd | null {
  const ends = endsOf(grant, limits).flatMap(({ start, lifetime, reminder }): LoginEnd[] => {
    const age = ageOf(start.at, start.portalTime, now, confirmed);
    return age === null || reminder === null
      ? []
      : [{ remaining: lifetime - age, recorded: start.at.wall + lifetime, reminder }];
  });
  return ends.sort((a, b) => a.remaining - b.remaining)[0] ?? null;
}

/**
 * When the login of a grant ended by itself, in ms since 1970, by the clocks of that time; null if it had not when the
 * portal refused the grant.
 * @param refused when that was
 */
export function endBeforeRefusal(grant: Grant, limits: LoginLimits, refused: Instant): number | null {
  const ends = endsOf(grant, limits).map(({ start, lifetime }) => (start.portalTime ?? start.at.wall) + lifetime);
  const end = Math.min(...ends);
  return end <= refused.wall + END_TOLERANCE ? end : null;
}

/** The shortest time for which a refresh token lives if it is not used, in ms; Infinity if that is not known. */
export function refreshTokenLifetimeOf(grant: Grant, limits: Pick<LoginLimits, 'idleLifetime'> | undefined): number {
  const { refreshTokenLifetime = Number.POSITIVE_INFINITY } = grant;
  return Math.min(refreshTokenLifetime, limits?.idleLifetime ?? Number.POSITIVE_INFINITY);
}

/** An end of a login: `lifetime` ms after `start`. */
interface PossibleEnd {
  readonly start: Pick<Login, 'at' | 'portalTime'>;
  readonly lifetime: number;
  /** As in {@link LoginEnd}; null if each refresh puts the end off. */
  readonly reminder: number | null;
}

function endsOf(grant: Grant, { loginLifetime, idleLifetime }: LoginLimits): readonly PossibleEnd[] {
  const { login, obtained: at, portalTime, refreshToken, refreshTokenLifetime } = grant;
  const refresh = { at, portalTime };
  if (refreshToken === null) return [{ start: refresh, lifetime: grant.lifetime, reminder: grant.lifetime }];
  const ends: PossibleEnd[] = [];
  if (loginLifetime !== null && login !== undefined) {
    ends.push({ start: login, lifetime: loginLifetime, reminder: reminderFor(loginLifetime) });
  }
  if (idleLifetime !== null) {
    ends.push({ start: refresh, lifetime: idleLifetime, reminder: null });
  }
  if (refreshTokenLifetime !== undefined) {
    const whole = login?.refreshTokenLifetime ?? refreshTokenLifetime;
    const hasShrunk = refreshTokenLifetime < SHRUNK_SHARE * whole;
    ends.push({ start: refresh, lifetime: refreshTokenLifetime, reminder: hasShrunk ? reminderFor(whole) : null });
  }
  return ends;
}

/** How long before the end of a login a person is reminded, in ms. @param whole the lifetime of the login, in ms */
function reminderFor(whole: number): number {
  return Math.min(whole / 2, MAX_REMINDER, Math.max(whole / 4, MIN_REMINDER));
}

/** When the hub sends the old refresh token again after a lost answer, see docs/decisions/lost-answers.md. */
export type LostAnswerRetry = 'early' | 'late';

/** What the configuration says about the logins and refreshes of a portal. Times are in ms. */
export interface PortalPolicy extends LoginLimits {
  readonly retryLostAnswer: LostAnswerRetry;
  /** Whether each refresh ends the access token that was issued before it. */
  readonly refreshEndsAccessToken: boolean;
}

/** The policy of a portal of which the configuration says nothing. */
export const DEFAULT_POLICY: PortalPolicy = {
  retryLostAnswer: 'early',
  loginLifetime: null,
  idleLifetime: null,
  refreshEndsAccessToken: false,
};
