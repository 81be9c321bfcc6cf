import * as v from 'valibot';
import type { Instant } from '../../core/clock.ts';
import type { DeviceLink } from '../../core/portals/login-link.ts';
import { Secret } from '../../core/secret.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import { parseBody } from '../token-response.ts';

/** The interval of polls if the response names none, in seconds (RFC 8628, 3.2). */
const DEFAULT_INTERVAL = 5;
/** The longest interval that is kept, in seconds: a person waits for the result. */
const MAX_INTERVAL = 60;
/** The shortest and the longest lifetime of a device code that is kept, in seconds. */
const [MIN_LIFETIME, MAX_LIFETIME] = [30, 86_400];

const seconds = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,6}$/), v.transform(Number))]),
  v.finite(),
  v.minValue(0),
);
const loginAddress = v.pipe(v.string(), v.maxLength(2048), v.check(isLoginAddress));
/** Shown to a person who types it: no line breaks and no invisible characters. */
const userCode = v.pipe(v.string(), v.regex(/^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u));

/** RFC 8628, 3.2. `verification_url` is the name of a draft that is still in use. */
const deviceResponse = v.object({
  device_code: v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,4096}$/)),
  user_code: userCode,
  verification_uri: v.exactOptional(loginAddress),
  verification_url: v.exactOptional(loginAddress),
  verification_uri_complete: v.exactOptional(v.fallback(v.nullable(loginAddress), null)),
  expires_in: v.exactOptional(v.fallback(v.nullable(seconds), null)),
  interval: v.exactOptional(v.fallback(v.nullable(seconds), null)),
});

/**
 * The login of a device authorization response; null if it is invalid.
 * @param verifier the PKCE code verifier; null without PKCE
 * @param begun when the request was sent
 */
export function parseDeviceAuthorization(body: string, verifier: Secret | null, begun: Instant): DeviceLink | null {
  const parsed = parseBody(deviceResponse, body);
  const address = parsed?.verification_uri ?? parsed?.verification_url;
  if (parsed === null || address === undefined) return null;
  const complete = parsed.verification_uri_complete ?? null;
  const lifetime = Math.min(Math.max(parsed.expires_in ?? MAX_LIFETIME, MIN_LIFETIME), MAX_LIFETIME);
  return {
    kind: 'device',
    authorizeUrl: complete ?? address,
    redirect: null,
    userCode: parsed.user_code,
    containsUserCode: complete !== null,
    deviceCode: new Secret(parsed.device_code),
    verifier,
    interval: 1000 * Math.min(parsed.interval ?? DEFAULT_INTERVAL, MAX_INTERVAL),
    begun,
    lifetime: 1000 * lifetime,
  };
}

/** A person opens it: it may be on any host, but not on a page that anybody on the way could replace. */
function isLoginAddress(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}
