import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { LanService, PairedConnection } from '../../core/lan-service.ts';
import {
  parseAuthorizationResponse,
  parseStatefulResponse,
  type ReceivedResponse,
} from '../../core/pairings/authorization-response.ts';
import { isInstallerInitiated, type Pairing } from '../../core/pairings/pairing.ts';
import { type BatchForBrowser, countLogins, type PairingBatch } from '../../core/pairings/pairing-batch.ts';
import { unmapIpv4 } from '../../system/addresses.ts';
import { connectionNote, sentenceAbout } from '../connection-names.ts';
import { type PublicPage, sendMessagePage, sendPublicPage } from '../document.ts';
import { BROWSER_TOKEN_COOKIE, cookieValue, setCallbackCookie } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { pairingBatchPath, pairingPath } from '../paths.ts';
import { sendToPortal } from '../portal-link.ts';
import type { Texts } from '../texts/en.ts';
import { isFixedByNewPairing, loginMessage, pairingMessage } from './pairing-messages.ts';

/**
 * The cookie of a browser that brought an accepted code of a pairing batch: for an hour it may continue with the next
 * login.
 */
const BATCH_TOKEN_COOKIE = 'latchkey-batch';
/** Returns the address of a page of the hub, for the host that the browser of a request is signed in at. */
type HubUrl = (request: FastifyRequest, path: string) => string;
/** `Retry-After` while the portal is unreachable, in seconds. */
const UNREACHABLE_RETRY_SECONDS = 5;

/**
 * Serves the redirect of a helper portal. It is plain HTTP, because over HTTPS a browser would warn about the hub's own
 * certificate in the middle of a login. That is safe: the code in it is useless without the hub's secret, and the hub
 * does not trust a code before the portal itself has delivered the same one (`AuthorizationResponses`).
 */
export function serveCallback(
  app: FastifyInstance,
  service: Pick<LanService, 'receiveResponse'>,
  hubName: string,
  hubUrl: HubUrl,
): void {
  const answer = createAnswer(service, hubName, hubUrl);
  app.get<{ Params: { nonce: string } }>('/callback/:nonce', async (request, reply) => {
    const response = parseAuthorizationResponse(queryOf(request));
    return answer(request, reply, response && { nonce: request.params.nonce, response });
  });
}

/**
 * Serves the redirect of a portal that returns the `state` of its link (RFC 6749, 4.1.2): one fixed address, because
 * many portals compare it byte by byte. Over HTTP for the same reason as {@link serveCallback}, and over HTTPS for
 * portals that redirect to nothing else. The code is useless without its PKCE verifier, which only the hub has.
 */
export function serveStatefulCallback(
  app: FastifyInstance,
  service: Pick<LanService, 'receiveResponse'>,
  hubName: string,
  hubUrl: HubUrl,
): void {
  const answer = createAnswer(service, hubName, hubUrl);
  app.get('/callback', async (request, reply) => answer(request, reply, parseStatefulResponse(queryOf(request))));
}

/** Hands an authorization response to the hub, and answers with a page; null for a malformed one. */
function createAnswer(service: Pick<LanService, 'receiveResponse'>, hubName: string, hubUrl: HubUrl) {
  return async (request: FastifyRequest, reply: FastifyReply, received: ReceivedResponse | null) => {
    const context = pageContext(hubName, request);
    const { result: texts } = context.texts;
    const link = { href: hubUrl(request, '/'), text: context.texts.batch.openHubPage };
    const sendError = (status: number, heading: string, text: string) =>
      sendMessagePage(reply, status, context, { severity: 'bad', heading, text, link });
    if (received === null) return sendError(400, texts.malformed, texts.malformedText);
    const found = await service.receiveResponse(received, {
      address: unmapIpv4(request.socket.remoteAddress ?? ''),
      browserToken: cookieValue(request, BROWSER_TOKEN_COOKIE),
      batchToken: cookieValue(request, BATCH_TOKEN_COOKIE),
    });
    if (found === null) return sendError(404, texts.unknownLink, texts.unknownLinkText);
    if (found.rejected === 'used') return sendError(409, texts.usedLink, texts.usedLinkText);
    if (found.rejected === 'foreign_issuer') return sendError(400, texts.foreignIssuer, texts.foreignIssuerText);
    if (received.response.kind === 'nothing' && found.pairing.step.kind === 'waiting') {
      return sendError(400, texts.noCode, texts.noCodeText);
    }
    return sendResult(reply, context, found, found.login, (path) => hubUrl(request, path));
  };
}

/**
 * Serves the button with which a browser continues with the next login of a batch. The app must parse forms.
 */
export function serveNextLogin(
  app: FastifyInstance,
  service: Pick<LanService, 'continueBatch' | 'browserToken'>,
  hubName: string,
  hubUrl: HubUrl,
): void {
  // The nonce is not a credential, because everybody who saw the link knows it.
  app.post<{ Params: { nonce: string } }>('/callback/:nonce/next', async (request, reply) => {
    const { nonce } = request.params;
    const context = pageContext(hubName, request);
    const isRetry = new URLSearchParams(typeof request.body === 'string' ? request.body : '').get('again') === '1';
    const next = await service
      .continueBatch(nonce, isRetry, cookieValue(request, BATCH_TOKEN_COOKIE))
      .catch((error: unknown) => {
        if (error instanceof Failure && error.code === 'not_allowed') return { kind: 'over' } as const;
        throw error;
      });
    switch (next.kind) {
      case 'link':
        return sendToPortal(reply, context, next, service.browserToken(next.pairing), { next: hubUrl(request, '/') });
      case 'unreachable':
        reply.header('retry-after', UNREACHABLE_RETRY_SECONDS);
        return sendPublicPage(reply, 503, context, portalUnreachablePage(next.connection, nonce, context.texts));
      case 'not_proved':
        return reply.header('cache-control', 'no-store').redirect(hubUrl(request, pairingBatchPath(next.batch)), 303);
      case 'over':
        return sendMessagePage(reply, 200, context, {
          severity: 'neutral',
          heading: context.texts.batch.ended,
          text: context.texts.batch.endedText,
          link: { href: hubUrl(request, '/'), text: context.texts.batch.openHubPage },
        });
    }
  });
}

/** Only the first "?" is a delimiter (RFC 3986, 3.4): a code may contain more of them. */
function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '');
}

/** The page after a login: of its pairing, or of the batch that the pairing is part of. */
function sendResult(
  reply: FastifyReply,
  context: PageContext,
  found: PairedConnection & { readonly pairing: Pairing; readonly batch: BatchForBrowser | null },
  login: 'unconfirmed' | 'too_late' | null,
  hubUrl: (path: string) => string,
): FastifyReply {
  const { pairing, batch: membership } = found;
  if (membership?.batchToken) setCallbackCookie(reply, BATCH_TOKEN_COOKIE, membership.batchToken);
  const resultUrl = hubUrl(membership === null ? pairingPath(pairing.id) : pairingBatchPath(membership.id));
  const page =
    membership?.batch &&
    batchResultPage({ ...found, batch: membership.batch }, pairing.nonce, resultUrl, context.texts);
  if (page) return sendPublicPage(reply, 200, context, page);
  if (login !== null && pairing.step.kind !== 'ended') {
    return sendMessagePage(reply, 200, context, loginMessage(login, found, context.texts));
  }
  // This may be the window in which the installer followed the login link from the hub's page: it leads back there.
  const isLinked = pairing.step.kind === 'ended' && isInstallerInitiated(pairing);
  const { batch, code } = context.texts;
  const link = { href: resultUrl, text: isFixedByNewPairing(pairing) ? code.tryAgain : batch.openHubPage };
  return sendMessagePage(reply, 200, context, {
    ...pairingMessage(pairing, found, context.texts),
    ...(isLinked && { link }),
  });
}

/**
 * The last page of a login that was part of a pairing batch: its result, and a button for the next connection.
 * @param nonce the pairing's nonce
 * @param batchUrl the address of the batch on the hub's page
 * @returns null while the pairing has not ended: then the page is that of a single pairing
 */
function batchResultPage(
  { pairing, batch, ...paired }: PairedConnection & { pairing: Pairing; batch: PairingBatch },
  nonce: string,
  batchUrl: string,
  allTexts: Texts,
): PublicPage | null {
  const { result, batch: texts } = allTexts;
  const { connection } = paired;
  const titleOf = (name: string) => batch.titles[name] ?? name;
  const { step } = pairing;
  if (step.kind !== 'ended') return null;
  const isPaired = step.result.kind === 'paired' || batch.connected.includes(connection);
  const current = batch.current?.connection ?? batch.next;
  const buttons = [
    current !== null && current !== connection ? renderNextLoginForm(nonce, false, texts.next(titleOf(current))) : '',
    isPaired ? '' : renderNextLoginForm(nonce, true, texts.retry(paired.title)),
  ].join('\n');
  const note = connectionNote(paired, allTexts);
  const about = note === '' ? '' : html`<p>${note}</p>`;
  const toHub = html`<p><a href="${batchUrl}">${texts.openHubPage}</a></p>`;
  if (step.result.kind === 'failed' && !isPaired) {
    return {
      heading: sentenceAbout(paired, allTexts, result.notConnected),
      severity: 'bad',
      hasForm: true,
      body: html`!${about}<p>${result.reasons[step.result.reason]}</p>!${buttons}!${toHub}`,
    };
  }
  const heading = sentenceAbout(paired, allTexts, result.connected);
  if (current !== null) {
    return { heading, severity: 'good', hasForm: true, body: html`!${about}!${buttons}!${toHub}` };
  }
  const { done, all } = countLogins(batch);
  const end = html`<p><a class="button" href="${batchUrl}">${texts.openHubPage}</a></p>`;
  if (batch.skipped.length === 0) {
    const body = html`<p>${result.connectedText}</p>!${end}`;
    return { heading: texts.allConnected(all || batch.connected.length), severity: 'good', body };
  }
  const skippedList = batch.skipped.map(
    ({ name, reason }) => html`<p><b>${titleOf(name)}</b>: ${texts.reasons[reason]}</p>`,
  );
  const body = html`!${about}<p>${texts.someConnected(done, all)}</p>!${skippedList}!${end}`;
  return { heading, severity: 'good', body };
}

/** The page if the portal sent no link for the next appliance in time. */
function portalUnreachablePage(appliance: string, nonce: string, { batch: texts, code }: Texts): PublicPage {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    hasForm: true,
    body: html`<p>${texts.unreachableText(appliance)}</p>!${renderNextLoginForm(nonce, false, code.tryAgain)}`,
  };
}

function renderNextLoginForm(nonce: string, isRetry: boolean, text: string): string {
  const retryField = isRetry ? html`<input type="hidden" name="again" value="1">` : '';
  return html`<form method="post" action="/callback/${encodeURIComponent(nonce)}/next">!${retryField}<button>${text}</button></form>`;
}
