import { fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import { isRefresh } from '../wire.ts';

/** Refreshes with a token that was refused for good: one, and one more in doubt. */
const MAX_REFUSED = 2;
/** The client's own events after which it counts as one that does not ask again. */
const LATER_CALLS = 5;

const INVALID_GRANT =
  'RFC 6749, 5.2: invalid_grant: "The provided authorization grant … or refresh token is invalid, expired, revoked"';

/** Fails if the client goes on asking for a refresh token that was refused for good. */
async function asksOnce(sitting: Sitting, since: number): Promise<string> {
  await sitting.until('a refresh', () => sitting.refreshes(since)[0]);
  const token = sitting.refreshes(since)[0]?.logged.form['refresh_token'];
  const refused = () => sitting.refreshes(since).filter(({ logged }) => logged.form['refresh_token'] === token).length;
  await sitting.unlessStopped(() => {
    if (refused() > MAX_REFUSED) return true;
    if (sitting.loginsSince(since) > 0 || sitting.to('device_authorization', since).length > 0) return true;
    const first = sitting.wire.requests.findIndex((one, index) => index >= since && isRefresh(one));
    return sitting.calls(first).length >= LATER_CALLS;
  });
  if (refused() > MAX_REFUSED) fail(`the client sent the refused refresh token ${refused()} times`);
  if (sitting.loginsSince(since) > 0) return 'after invalid_grant the client asked for a new login';
  if (sitting.client.ended !== null) return `after invalid_grant the program ${sitting.client.endText}`;
  return `after invalid_grant ${refused() === 1 ? 'no' : 'one'} further refresh with the same token`;
}

/** How logins and access tokens end. */
export const ENDS: readonly GroupSituation[] = [
  {
    name: 'revoked',
    source: INVALID_GRANT,
    settings: { refreshRotation: 'never' },
    right: 'a refresh token that was refused with invalid_grant is not sent again, and again',
    async happens(sitting) {
      await sitting.working();
      const since = sitting.mark;
      for (const { id } of sitting.emulator.grants()) sitting.emulator.revoke(id);
      return asksOnce(sitting, since);
    },
  },
  {
    name: 'reused-by-a-thief',
    right: 'after somebody else has used its refresh token, which revokes the login, the client does not go on asking',
    source: 'RFC 9700, 4.14.2: "the authorization server … will revoke the active refresh token"',
    settings: { refreshRotation: 'never', onReuse: 'revoke-family' },
    async happens(sitting) {
      await sitting.working();
      const [refresh] = await sitting.refreshed(1);
      sitting.emulator.change({ refreshRotation: 'always' });
      const since = sitting.mark;
      await sitting.replay(refresh?.logged.form ?? {});
      return asksOnce(sitting, since);
    },
  },
  {
    name: 'invalid-client',
    right: 'invalid_client says nothing about the login: the client keeps its refresh token for when it is known again',
    source: 'RFC 6749, 5.2: invalid_client: "Client authentication failed"',
    settings: { refreshRotation: 'never' },
    async happens(sitting) {
      await sitting.working();
      const fault = { kind: 'status', status: 401, body: '{"error":"invalid_client"}' } as const;
      const refused = await sitting.faultNextRefresh(fault);
      const since = sitting.wire.requests.indexOf(refused) + 1;
      // A person mends the registration, and starts a program that has ended, or waits for that.
      await sitting.unlessStopped(() => sitting.refreshes(since)[0] ?? sitting.calls(since)[LATER_CALLS]);
      if (sitting.refreshes(since).length === 0) await sitting.restart();
      const again = await sitting.recovered(since);
      if (again.logged.form['refresh_token'] !== refused.logged.form['refresh_token'])
        fail('another refresh token was sent');
      return 'invalid_client once, and then a refresh with the same refresh token';
    },
  },
  {
    name: 'access-token-refused-early',
    right: 'an access token that the API refuses before its time causes one refresh',
    source:
      'RFC 6750, 3.1: invalid_token: "The client MAY request a new access token and retry the protected resource request"',
    settings: { tokenLifetime: 3600, refreshRotation: 'never' },
    async happens(sitting) {
      await sitting.working();
      const since = sitting.mark;
      sitting.refuseAccessTokens();
      await sitting.recovered(since);
      const good = sitting.mark;
      await sitting.until('two more calls', () => sitting.calls(good).length >= 2);
      const { length } = sitting.refreshes(since);
      if (length > 1) fail(`one refused access token caused ${length} refreshes`);
      return 'a call with status 401, one refresh, and calls with the new access token';
    },
  },
  {
    name: 'insufficient-scope',
    right: 'a 403 of the API with insufficient_scope causes no refreshes, which can not widen the scope',
    source:
      'RFC 6750, 3.1: insufficient_scope: "The request requires higher privileges than provided by the access token"',
    settings: { tokenLifetime: 3600, refreshRotation: 'never' },
    async happens(sitting) {
      await sitting.working();
      const headers = { 'www-authenticate': 'Bearer error="insufficient_scope", scope="more"' };
      const body = '{"error":"insufficient_scope"}';
      const { id } = sitting.emulator.addFault({
        kind: 'status',
        status: 403,
        headers,
        body,
        endpoint: 'whoami',
        times: null,
      });
      const isRefused = ({ logged }: { logged: { fault?: string | undefined } }) => logged.fault === id;
      await sitting.until('a call', () => sitting.calls().some(isRefused));
      const since = sitting.mark;
      await sitting.unlessStopped(() => sitting.calls(since).length >= 4);
      const { length } = sitting.refreshes(since);
      if (length > 1) fail(`${sitting.calls(since).length} calls with status 403 caused ${length} refreshes`);
      return `${sitting.calls(since).length} calls with status 403, and ${length === 0 ? 'no refresh' : 'one refresh'}`;
    },
  },
];
