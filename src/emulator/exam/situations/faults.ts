import { wallClock } from '../../../system/clock.ts';
import type { SettingOptions } from '../../settings/settings.ts';
import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting, TokenFault } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import { isGranted, isRefresh } from '../wire.ts';

const KEEP = 'the client keeps its refresh token, tries it again, and goes on with the new access token';
const NOT_A_REFUSAL =
  'RFC 6749, 5.2: only the error "invalid_grant" says that the "refresh token is invalid, expired, revoked"';
const RETRY_AFTER =
  'RFC 9110, 10.2.3: "Servers send the "Retry-After" header field to indicate how long the user agent ought to wait before making a follow-up request"';
const SECRET_TOKEN =
  'RFC 6749, 10.4: refresh tokens are "shared only among the authorization server and the client to whom the refresh tokens were issued"';

/** Seconds in Retry-After: more than a client waits that does not look at it. */
const RETRY_AFTER_SECONDS = 5;

/** Refresh tokens stay valid, so that a client that does not replace them is not blamed for it here. */
const STABLE: SettingOptions = { refreshRotation: 'never' };

/** A fault that passes. @param isLost whether the lost response replaced the refresh token, which then has a grace time */
function passing(name: string, seen: string, fault: TokenFault, isLost = false): GroupSituation {
  return {
    name,
    right: KEEP,
    source: NOT_A_REFUSAL,
    settings: { ...STABLE, refreshGraceTime: 60, onReuse: 'revoke-family' },
    async happens(sitting) {
      await sitting.working();
      if (isLost) sitting.emulator.change({ refreshRotation: 'always' });
      const { logged } = await sitting.faultNextRefresh(fault);
      const again = await sitting.recovered(sitting.wire.requests.findIndex((one) => one.logged === logged) + 1);
      if (again.logged.form['refresh_token'] !== logged.form['refresh_token']) fail('another refresh token was sent');
      return `${seen}, and then a refresh with the same refresh token`;
    },
  };
}

/** A response that says when to come back. @param headerFor its Retry-After for a time, in ms since 1970 */
function delayed(name: string, status: number, headerFor: (at: number) => string): GroupSituation {
  return {
    name,
    source: RETRY_AFTER,
    right: 'the client does not send the next refresh before the time in Retry-After',
    settings: STABLE,
    async happens(sitting) {
      await sitting.working();
      const held = sitting.wire.hold('request', isRefresh);
      await sitting.until('a refresh', () => held.requests[0]);
      // A time in seconds, rounded up, because a date has no fractions.
      const at = 1000 * Math.ceil(wallClock.now().wall / 1000 + RETRY_AFTER_SECONDS);
      const headers = { 'retry-after': headerFor(at) };
      const body = '{"error":"temporarily_unavailable"}';
      sitting.emulator.addFault({
        kind: 'status',
        status,
        headers,
        body,
        endpoint: 'token',
        grantType: 'refresh_token',
      });
      const since = sitting.mark;
      held.release();
      const next = await sitting.until('another refresh', () => sitting.refreshes(since)[0]);
      const early = Math.round((at - wallClock.now().wall) / 100) / 10;
      if (early > 1.5)
        fail(`the next refresh came ${early} s before the time in Retry-After: ${headers['retry-after']}`);
      await sitting.until('its response', () => isGranted(next));
      return `status ${status} with Retry-After: ${headers['retry-after']}, and no refresh before that`;
    },
  };
}

/** A redirect of the token endpoint to another server. */
function redirected(status: 301 | 307): GroupSituation {
  return {
    name: `redirect-${status}`,
    source: SECRET_TOKEN,
    right: 'a redirect of the token endpoint to another origin gets neither the refresh token nor the client secret',
    settings: STABLE,
    async happens(sitting) {
      await sitting.working();
      const location = `${sitting.emulator.baseUrl}/elsewhere/token`;
      const refused = await sitting.faultNextRefresh({ kind: 'redirect', status, location });
      await sitting.recovered(sitting.wire.requests.indexOf(refused) + 1);
      for (const { logged, headers } of sitting.to('unknown')) {
        if ('refresh_token' in logged.form)
          fail(`the client followed the ${status} and sent its refresh token to ${logged.url}`);
        if (headers.authorization !== undefined)
          fail(`the client followed the ${status} and sent its secret to ${logged.url}`);
      }
      return `a ${status} to another origin, which got no secret, and then a refresh at the token endpoint`;
    },
  };
}

/** What a network, a proxy or a busy cloud does to a refresh. */
export const FAULTS: readonly GroupSituation[] = [
  {
    // First, because it takes longest.
    name: 'no-answer',
    source: NOT_A_REFUSAL,
    right: 'the client gives up a refresh that gets no answer, and tries again',
    settings: STABLE,
    async happens(sitting) {
      await sitting.working();
      const silent = await sitting.faultNextRefresh({ kind: 'hang' });
      const since = sitting.wire.requests.indexOf(silent) + 1;
      // Many HTTP clients wait for a minute.
      await sitting.until('another refresh', () => sitting.refreshes(since)[0], { seconds: 75 });
      await sitting.recovered(since);
      return 'no answer to a refresh, and then another one';
    },
  },
  passing('answer-lost-before-commit', 'a reset of the connection', { kind: 'reset_before' }),
  passing('answer-lost-after-commit', 'a response that was lost', { kind: 'commit_then_drop' }, true),
  passing('truncated', 'a response that was cut off', { kind: 'truncate', bytes: 20 }, true),
  passing('status-500', 'status 500', { kind: 'status', status: 500, body: '{"error":"server_error"}' }),
  delayed('retry-after-seconds', 503, () => String(RETRY_AFTER_SECONDS)),
  delayed('retry-after-date', 503, (at) => new Date(at).toUTCString()),
  delayed('too-many-requests', 429, () => String(RETRY_AFTER_SECONDS)),
  passing('firewall-page', 'status 403 with a web page', {
    kind: 'status',
    status: 403,
    headers: { 'content-type': 'text/html' },
    body: '<!doctype html><title>Access denied</title>',
  }),
  passing('captive-portal', 'status 200 with a web page', { kind: 'not_json' }),
  {
    name: 'gzip',
    right: 'the client reads compressed responses, or says that it accepts none',
    source:
      'RFC 9110, 12.5.3: "If no Accept-Encoding header field is in the request, any content coding is considered acceptable by the user agent"',
    settings: STABLE,
    async happens(sitting) {
      await sitting.working();
      const [refresh] = await sitting.refreshed(1);
      const accepted = refresh?.headers['accept-encoding'];
      if (typeof accepted === 'string' && !/gzip|\*/.test(accepted))
        doesNotApply(`the client accepts only ${accepted}`);
      sitting.emulator.change({ contentEncoding: 'gzip' });
      await sitting.refreshed(2, sitting.mark);
      await sitting.working(sitting.mark);
      return 'refreshes with compressed responses';
    },
  },
  redirected(301),
  redirected(307),
  changed('unknown-members', 'members that no standard knows', '{"x_cloud":{"a":[1]},"x_trace":"1"}', {
    right: 'the client ignores members of a token response that it does not know',
    source: 'RFC 6749, 5.1: "The client MUST ignore unrecognized value names in the response"',
  }),
  changed('token-type-in-capitals', 'token_type BEARER', '{"token_type":"BEARER"}', {
    right: 'the client compares token_type without regard to case',
    source: 'RFC 6749, 5.1: token_type: "Value is case insensitive"',
  }),
];

/** Token responses with other members. */
function changed(
  name: string,
  seen: string,
  members: string,
  more: Pick<GroupSituation, 'right' | 'source'>,
): GroupSituation {
  return {
    name,
    ...more,
    settings: STABLE,
    async happens(sitting: Sitting) {
      await sitting.working();
      sitting.emulator.addFault({ kind: 'change_members', endpoint: 'token', members, times: null });
      const since = sitting.mark;
      await sitting.until('two refreshes and a call with a new token', () => {
        const second = sitting.refreshes(since)[1];
        const at = second === undefined ? -1 : sitting.wire.requests.indexOf(second);
        return at !== -1 && sitting.calls(at).some(isGranted);
      });
      return `${seen} in responses, and further refreshes`;
    },
  };
}
