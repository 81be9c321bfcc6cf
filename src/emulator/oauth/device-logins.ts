import * as v from 'valibot';
import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';
import { instantSchema } from '../json.ts';
import type { Settings } from '../settings/settings.ts';
import type { BrowserLogin } from './browser-logins.ts';
import type { IssuedSecrets } from './issued-secrets.ts';

/** The request of a device for a login (RFC 8628, 3.1). */
interface DeviceLoginRequest {
  /** The name of the issuer; null or left out for the default one. */
  readonly issuer?: string | null;
  readonly clientId: string;
  readonly scope: string | null;
  /** The S256 code challenge, or null. */
  readonly challenge: string | null;
  /** Whether the request asked for offline access. */
  readonly offline: boolean;
}

/** One login of a device (RFC 8628), from its device authorization request on. */
export interface DeviceLogin extends DeviceLoginRequest {
  readonly deviceCode: string;
  /** As it is shown: `WDJB-MJHT`. */
  readonly userCode: string;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Seconds that the device must wait between two polls; each poll that comes too early adds 5. */
  interval: number;
  /** Milliseconds since 1970, or null before the first poll. */
  polledAt: number | null;
  /** The user who allowed access, `denied: true`, or null while nobody has decided. */
  decision: (Pick<BrowserLogin, 'user'> & Partial<BrowserLogin>) | { readonly denied: true } | null;
  /** The ID of the grant, or null while the device code is unused. */
  grantId: string | null;
}

/** Device logins kept, including used and expired ones, so that a second use is detected. */
const MAX_DEVICE_LOGINS = 20_000;

/** Consonants that are not mistaken for each other and form no words (RFC 8628, 6.1). */
const USER_CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LENGTH = 8;

/** Seconds by which `slow_down` increases the interval (RFC 8628, 3.5). */
const SLOW_DOWN_SECONDS = 5;
/** Milliseconds by which a poll may come early, because timers and clocks are not exact. */
const POLL_TOLERANCE_MS = 100;

/** Issues and stores device codes and user codes. */
export class DeviceLogins {
  readonly #logins = new BoundedMap<DeviceLogin>(MAX_DEVICE_LOGINS);
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;
  readonly #onChange: () => void;

  /** @param saved the logins of the state file, oldest first @param onChange called when a login begins or is decided */
  constructor(saved: readonly DeviceLogin[], now: () => number, issued: IssuedSecrets, onChange: () => void) {
    this.#now = now;
    this.#issued = issued;
    this.#onChange = onChange;
    for (const login of saved) this.#logins.set(login.deviceCode, login);
  }

  issue(authorization: DeviceLoginRequest, { deviceCodeLifetime, deviceInterval }: Settings): DeviceLogin {
    const now = this.#now();
    const login: DeviceLogin = {
      ...authorization,
      deviceCode: this.#issued.record('device_code', systemRandom.token(32)),
      userCode: this.#issued.record('user_code', randomUserCode()),
      issuedAt: now,
      expiresAt: now + 1000 * deviceCodeLifetime,
      interval: deviceInterval,
      polledAt: null,
      decision: null,
      grantId: null,
    };
    this.#logins.set(login.deviceCode, login);
    this.#onChange();
    return login;
  }

  /** A login by its device code, even if it was used or has expired. */
  find(deviceCode: string): DeviceLogin | undefined {
    return this.#logins.get(deviceCode);
  }

  /** A login by its user code, with or without hyphen and in any case; even if it was decided or has expired. */
  findByUserCode(userCode: string): DeviceLogin | undefined {
    const code = normalizedUserCode(userCode);
    return this.all().findLast((login) => normalizedUserCode(login.userCode) === code);
  }

  /** Whether a user can still decide. */
  isWaiting(login: DeviceLogin): boolean {
    return login.decision === null && !this.isExpired(login);
  }

  isExpired(login: DeviceLogin): boolean {
    return this.#now() >= login.expiresAt;
  }

  /** Records a poll. @returns whether it came too early; the interval then grows */
  recordPoll(login: DeviceLogin): boolean {
    const now = this.#now();
    const { polledAt, interval } = login;
    login.polledAt = now;
    if (polledAt === null || now + POLL_TOLERANCE_MS >= polledAt + 1000 * interval) return false;
    login.interval += SLOW_DOWN_SECONDS;
    return true;
  }

  decide(login: DeviceLogin, decision: NonNullable<DeviceLogin['decision']>): void {
    login.decision = decision;
    this.#onChange();
  }

  /** All logins, oldest first. */
  all(): DeviceLogin[] {
    return this.#logins.values();
  }
}

function randomUserCode(): string {
  const letters = Array.from({ length: USER_CODE_LENGTH }, () =>
    USER_CODE_LETTERS.charAt(systemRandom.below(USER_CODE_LETTERS.length)),
  ).join('');
  return `${letters.slice(0, USER_CODE_LENGTH / 2)}-${letters.slice(USER_CODE_LENGTH / 2)}`;
}

/** A user code as a person may write it, without everything that is not a letter. */
function normalizedUserCode(userCode: string): string {
  return userCode.toUpperCase().replaceAll(/[^A-Z]/g, '');
}

/** A device that waits for its user, who has neither logged in nor refused. */
export const WaitingDevice = v.strictObject({
  user_code: v.string(),
  /** The client's ID. */
  client: v.string(),
  scope: v.nullable(v.string()),
  opened: instantSchema(),
  expires: instantSchema(),
});
export type WaitingDevice = Readonly<v.InferOutput<typeof WaitingDevice>>;

/** The waiting devices, oldest first. */
export function waitingDevices(logins: DeviceLogins): WaitingDevice[] {
  return logins
    .all()
    .filter((login) => logins.isWaiting(login))
    .map(({ userCode, clientId, scope, issuedAt, expiresAt }) => ({
      user_code: userCode,
      client: clientId,
      scope,
      opened: new Date(issuedAt).toISOString(),
      expires: new Date(expiresAt).toISOString(),
    }));
}
