import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { encodeParameter, withQueryParameters } from '../oauth/authorization-request.ts';
import { verifyIdToken } from '../oauth/issuers.ts';
import type { EmulatedPortal } from '../portal.ts';
import { loginCookiePath } from './authorize.ts';
import { logoutPage, sendMessage, sendPage } from './pages.ts';

/** Serves the logout that a client asks for (OpenID Connect RP-Initiated Logout 1.0). Tokens stay valid. */
export function serveLogout(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/logout', 'logout', { GET: logOut, POST: logOut });
}

async function logOut(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { portal, query, form, method, sentUrl } = requestContext(request);
  const isConfirmed = form?.get('action') === 'logout';
  // The request of a client: its browser sends the cookie, which is SameSite=Lax, only with a GET.
  if (method === 'POST' && form !== null && !isConfirmed) {
    const [path] = sentUrl.split('?');
    return reply.redirect(`${path}?${new URLSearchParams([...form])}`, 303);
  }
  const wanted = query === null || form === null ? null : readLogoutRequest(portal, query);
  if (wanted === null) return sendMessage(reply, 400, ...INVALID_PAGE);
  const { client, user, location } = wanted;
  const login = portal.browserLogins.find(request.headers.cookie);
  // RP-Initiated Logout, 2: without a hint the request may be forged, so the user decides.
  if (login !== null && login.user !== user && !isConfirmed)
    return sendPage(reply, 200, logoutPage(client, login.user));
  reply.header('set-cookie', portal.browserLogins.end(request.headers.cookie, loginCookiePath(request)));
  if (location !== null) return reply.redirect(location, method === 'GET' ? 302 : 303);
  return sendMessage(reply, 200, 'Logged out', 'You can close this page.');
}

const INVALID_PAGE = [
  'This link is not valid',
  'A part of the address is wrong or repeated, or the address to return to is not registered for the client.',
] as const;

/** What a client asks for, or null if its request is invalid. */
function readLogoutRequest(portal: EmulatedPortal, parameters: ReadonlyMap<string, string>) {
  const hint = parameters.get('id_token_hint');
  // Also an expired one (RP-Initiated Logout, 4).
  const hinted = hint === undefined ? undefined : verifyIdToken(portal, hint);
  if (hinted === null) return null;
  const id = parameters.get('client_id') ?? hinted?.clientId;
  const client = portal.settings.clients.get(String(id));
  if (hinted !== undefined && hinted.clientId !== id) return null;
  const target = parameters.get('post_logout_redirect_uri');
  if (target !== undefined && client?.postLogoutRedirectUris.includes(target) !== true) return null;
  const state = parameters.get('state');
  const location =
    target === undefined || state === undefined ? target : withQueryParameters(target, encodeParameter('state', state));
  return { client: client?.name ?? null, user: hinted?.user ?? null, location: location ?? null };
}
