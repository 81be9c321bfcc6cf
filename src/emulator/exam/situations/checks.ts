import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import { isGranted, isRefresh, type WireRequest } from '../wire.ts';

/** What was seen of a client that sent a refresh token again after its response replaced it; null if it did not. */
function findReuse(sitting: Sitting): string | null {
  const used = new Map<string, number>();
  for (const [index, request] of sitting.wire.requests.entries()) {
    if (!isRefresh(request)) continue;
    const { form, answer } = request.logged;
    const token = form['refresh_token'] ?? '';
    const before = used.get(token);
    if (before !== undefined)
      return `request ${index + 1} sent the refresh token that request ${before + 1} had sent already`;
    const isReplaced = 'refresh_token' in answer && answer['refresh_token'] !== token;
    if (isGranted(request) && isReplaced) used.set(token, index);
  }
  return null;
}

/** Fails if the client sent a refresh token again after its response replaced it. */
export function rejectReuse(sitting: Sitting): void {
  const reuse = findReuse(sitting);
  if (reuse !== null) fail(reuse);
}

/** Waits for some refreshes from a position on. Fails if the client sends a refresh token again that was replaced. */
export async function refreshedWithoutReuse(sitting: Sitting, count: number, since = 0): Promise<void> {
  await sitting.until(
    `${count} refreshes`,
    () => sitting.refreshes(since).filter(isGranted).length >= count || findReuse(sitting),
  );
  rejectReuse(sitting);
}

/**
 * Waits for what a client does whose access token the API refuses before its time. The situation does not apply to one
 * that then does not refresh.
 * @param since the position in the list of requests at which that began
 */
export async function afterRefusal<Found>(
  sitting: Sitting,
  since: number,
  what: string,
  find: () => Found | null | undefined | false,
): Promise<Found> {
  return sitting.until(what, () => {
    if (sitting.ignoresRefusals(since)) {
      doesNotApply('the client does not refresh when the API refuses: see the situation "access-token-refused-early"');
    }
    return find();
  });
}

/** What a client must do with a new refresh token. */
export const REPLACE =
  'RFC 6749, 6: "the client MUST discard the old refresh token and replace it with the new refresh token"';

/** What a login that survives a restart is for. */
export const STAYS_LOGGED_IN =
  'RFC 6749, 1.5: refresh tokens "are used to obtain a new access token when the current access token becomes invalid or expires"';

/** Waits until a client whose access token the API refuses since its restart refreshes or asks for a login. */
export async function afterRestart(sitting: Sitting, since: number): Promise<void> {
  const comesBack = () => sitting.refreshes(since)[0] ?? sitting.loginsSince(since) > 0;
  await afterRefusal(sitting, since, 'a refresh or a login', comesBack);
}

/** The situation does not apply to a client whose first refresh after a restart has the token of its environment. */
export function rejectFirstTokenAgain(sitting: Sitting, { logged }: WireRequest): void {
  if (logged.form['refresh_token'] === sitting.refreshToken)
    doesNotApply('after a restart the client begins with OAUTH_REFRESH_TOKEN again: see the situation "restart"');
}

/** Whether an authorization request is one of OpenID Connect. */
export function isOpenId(request: URLSearchParams): boolean {
  return request.get('scope')?.split(' ').includes('openid') === true;
}

/** What is wrong with the redirect_uri of the first token request with a code, if there is one; null otherwise. */
export function redirectProblem(sitting: Sitting): string | null {
  const form = sitting.to('token').find(({ logged }) => 'code' in logged.form)?.logged.form;
  const [url] = sitting.authorizeUrls;
  if (form === undefined || url === undefined) return null;
  const sent = new URL(url).searchParams.get('redirect_uri');
  const exchanged = form['redirect_uri'];
  if (sent === null || sent === exchanged) return null;
  return `redirect_uri was ${sent} and then ${exchanged ?? 'missing'}`;
}

/** Waits until a login by code works. The situation does not apply to a client that sends another redirect_uri. */
export async function loggedIn(sitting: Sitting): Promise<void> {
  await sitting.until('a call of the API with a valid token', () => {
    if (redirectProblem(sitting) !== null)
      doesNotApply('the client does not send the same redirect_uri twice: see the situation "exact-redirect"');
    return sitting.calls().some(isGranted);
  });
}

/** Waits for two refreshes. The situation does not apply to a client that does not replace its refresh token. */
export async function rotated(sitting: Sitting): Promise<void> {
  await sitting.until('two refreshes', () => sitting.refreshes().filter(isGranted).length > 1 || findReuse(sitting));
  if (findReuse(sitting) !== null) {
    doesNotApply('the client sends refresh tokens again that were replaced: see the situation "each-token-once"');
  }
}
