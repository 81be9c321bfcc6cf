import type { FastifyInstance } from 'fastify';
import { requestContext } from '../http/request-context.ts';
import { addRoute, sendNotFound } from '../http/routes.ts';
import type { HelperFlow } from '../oauth/helper-flows.ts';
import { type CodeSetOutcome, handleCodeSet } from '../oauth/login.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import { codePage, messagePage, sendPage } from './pages.ts';

/** Characters of a redirect_url: it travels inside the state, and that in a URL. */
const MAX_REDIRECT_URL_LENGTH = 2_000;

/**
 * Specification, endpoint 1. Bodies of any type are ignored. 404: unknown client. 400: a redirect_url that is no http(s)
 * URL, too long or refused by `refuseRedirectUrls`, or any redirect_url where the client's option says `refuse`.
 */
export function serveConfig(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/config/:client_id', 'config', {
    async POST(request, reply) {
      const { portal, pathClientId: clientInPath, query } = requestContext(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      if (client === undefined) return sendNotFound(reply);
      const wanted = query?.get('redirect_url');
      const redirectUrl = wanted === undefined ? null : normalizedWebUrl(wanted);
      if (
        query === null ||
        (wanted !== undefined && (redirectUrl === null || isRedirectUrlRejected(portal, client, wanted)))
      ) {
        return reply.code(400).send({ error: 'invalid_request', error_description: 'redirect_url is not accepted' });
      }
      const state = await portal.states.issue(client.id, redirectUrl, portal.settings.stateLifetime);
      const { base, frontend } = portal.origins();
      const id = encodeURIComponent(client.id);
      return reply.send({
        authorize_url: `${frontend}/sso/authorize?response_type=code&client_id=${id}&state=${state}`,
        code_url: `${base}/external/oauth2helper/code/get/${id}?state=${state}`,
        accesstoken_request_url: `${frontend}/sso/token`,
      });
    },
  });
}

function isRedirectUrlRejected(portal: EmulatedPortal, client: Client, redirectUrl: string): boolean {
  if (client.redirectUrl === 'refuse' || redirectUrl.length > MAX_REDIRECT_URL_LENGTH) return true;
  const pattern = portal.settings.refuseRedirectUrls;
  return pattern !== null && new RegExp(pattern, 'u').test(redirectUrl);
}

/** The address in the form that goes into a Location header, or null where it is not an http(s) URL. */
function normalizedWebUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : null;
}

/**
 * Specification, endpoint 2. One and the same 404 answers an unknown client, a state that is forged, foreign or expired,
 * and a login that has not happened. A code is served while it lives and is unused; whether the portal serves it after
 * the exchange is not known, so that is an option.
 */
export function serveCodeGet(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/code/get/:client_id', 'code/get', {
    async GET(request, reply) {
      const { portal, pathClientId: clientInPath, query } = requestContext(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      const state = query?.get('state');
      if (client === undefined || state === undefined) return sendNotFound(reply);
      const checked = await portal.states.validate(state, client.id);
      if (checked.kind !== 'good') return sendNotFound(reply);
      const run = portal.helperFlows.getOrCreate(checked.state);
      const code = servedCode(portal, run);
      run.polls.push({ at: portal.now(), status: code === null ? 404 : 200 });
      return code === null ? sendNotFound(reply) : reply.send({ code });
    },
  });
}

function servedCode(portal: EmulatedPortal, run: HelperFlow): string | null {
  const code = run.code === null ? undefined : portal.codes.find(run.code);
  if (code === undefined || !portal.codes.isUnexpired(code, portal.settings.codeLifetime)) return null;
  return code.grantId === null || portal.settings.codeUrlAfterExchange === 'served' ? code.value : null;
}

/** Specification, endpoint 6: brings the code from the authorization page to the helper and on to the client. */
export function serveCodeSet(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/code/set/:client_id', 'code/set', {
    async GET(request, reply) {
      const { portal, pathClientId: clientInPath, query } = requestContext(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      if (client === undefined) return sendPage(reply, 404, messagePage(...INVALID_ADDRESS_PAGE));
      const arrival = await handleCodeSet(portal, client, query);
      if (arrival.kind === 'redirect') return reply.redirect(arrival.location, 302);
      if (arrival.kind === 'show') return sendPage(reply, 200, codePage(client.name, arrival.code));
      const [status, title, text] = outcomePage(arrival.kind, client);
      return sendPage(reply, status, messagePage(title, text));
    },
  });
}

const INVALID_ADDRESS_PAGE = ['This address is not valid', 'Start again from your device or application.'] as const;

function outcomePage(
  kind: Exclude<CodeSetOutcome['kind'], 'redirect' | 'show'>,
  client: Client,
): [number, string, string] {
  switch (kind) {
    case 'delivered':
      return [200, 'Done', `${client.name} now gets its access. You can close this page.`];
    case 'refused':
      return [200, 'Refused', `${client.name} gets no access. You can close this page.`];
    case 'expired':
      return [400, 'Too late', 'This login has expired. Start again from your device or application.'];
    case 'invalid':
      return [400, ...INVALID_ADDRESS_PAGE];
  }
}
