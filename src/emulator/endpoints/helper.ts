import type { FastifyInstance } from 'fastify';
import { appendBounded } from '../bounded-collections.ts';
import { requestContext } from '../http/request-context.ts';
import { addRoute, sendNotFound } from '../http/routes.ts';
import { type HelperFlow, MAX_POLLS } from '../oauth/helper-flows.ts';
import { type CodeDeliveryOutcome, handleCodeDelivery } from '../oauth/login.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { codePage, sendMessage, sendPage } from './pages.ts';

/** Maximum length of a redirect_url, because it is inside the state, and the state is inside a URL. */
const MAX_REDIRECT_URL_LENGTH = 2_000;

/**
 * Serves the config endpoint (docs/portal.md, 1). Bodies of any type are ignored. An unknown client gets 404. A
 * redirect_url gets 400 if it is not an http(s) URL, is too long or matches `refuseRedirectUrls`, or if the client's
 * option is `refuse`.
 */
export function serveConfig(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/config/:client_id', 'config', {
    async POST(request, reply) {
      const { portal, pathClientId, query } = requestContext(request);
      const client = portal.settings.clients.get(pathClientId ?? '');
      if (client === undefined) return sendNotFound(reply);
      const requestedUrl = query?.get('redirect_url');
      const redirectUrl = requestedUrl === undefined ? null : normalizedWebUrl(requestedUrl);
      if (
        query === null ||
        (requestedUrl !== undefined && (redirectUrl === null || isRedirectUrlRejected(portal, client, requestedUrl)))
      ) {
        return reply.code(400).send({ error: 'invalid_request', error_description: 'redirect_url is not accepted' });
      }
      const state = portal.states.issue(client.id, redirectUrl, portal.settings.stateLifetime);
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

/** The URL in the form for a Location header, or null if it is not an http(s) URL. */
function normalizedWebUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : null;
}

/**
 * Serves the code_url (docs/portal.md, 2). An unknown client, a state that is forged, foreign or expired, and a login
 * that has not happened get the same 404. A code is served until it expires or is exchanged; docs/portal.md does not
 * say what follows the exchange, so that is a setting.
 */
export function serveCodePolling(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/code/get/:client_id', 'code/get', {
    async GET(request, reply) {
      const { portal, pathClientId, query } = requestContext(request);
      const client = portal.settings.clients.get(pathClientId ?? '');
      const state = query?.get('state');
      if (client === undefined || state === undefined) return sendNotFound(reply);
      const verified = portal.states.validate(state, client.id);
      if (verified.kind !== 'good') return sendNotFound(reply);
      const flow = portal.helperFlows.getOrCreate(verified.state);
      const code = servedCode(portal, flow);
      appendBounded(flow.polls, { at: portal.now(), status: code === null ? 404 : 200 }, MAX_POLLS);
      return code === null ? sendNotFound(reply) : reply.send({ code });
    },
  });
}

function servedCode(portal: EmulatedPortal, flow: HelperFlow): string | null {
  const code = flow.code === null ? undefined : portal.codes.find(flow.code);
  if (code === undefined || !portal.codes.isUnexpired(code, portal.settings.codeLifetime)) return null;
  return code.grantId === null || portal.settings.codeUrlAfterExchange === 'served' ? code.value : null;
}

/**
 * Serves the redirect target (docs/portal.md, 4), which takes the code from the browser and passes it to the client.
 */
export function serveCodeDelivery(app: FastifyInstance): void {
  addRoute(app, '/external/oauth2helper/code/set/:client_id', 'code/set', {
    async GET(request, reply) {
      const { portal, pathClientId, query } = requestContext(request);
      const client = portal.settings.clients.get(pathClientId ?? '');
      if (client === undefined) return sendMessage(reply, 404, ...INVALID_ADDRESS_PAGE);
      const outcome = handleCodeDelivery(portal, client, query);
      if (outcome.kind === 'redirect') return reply.redirect(outcome.location, 302);
      if (outcome.kind === 'show') return sendPage(reply, 200, codePage(client.name, outcome.code));
      return sendMessage(reply, ...outcomePage(outcome.kind, client));
    },
  });
}

const INVALID_ADDRESS_PAGE = ['This address is not valid', 'Start again from your device or application.'] as const;

function outcomePage(
  kind: Exclude<CodeDeliveryOutcome['kind'], 'redirect' | 'show'>,
  client: Client,
): [number, string, string] {
  switch (kind) {
    case 'delivered':
      return [200, 'Done', `${client.name} now gets access. You can close this page.`];
    case 'refused':
      return [200, 'Refused', `${client.name} does not get access. You can close this page.`];
    case 'expired':
      return [400, 'Too late', 'This login has expired. Start again from your device or application.'];
    case 'invalid':
      return [400, ...INVALID_ADDRESS_PAGE];
  }
}
