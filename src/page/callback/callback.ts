import type { FastifyInstance } from 'fastify';
import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { AuthorizationResponse, LanService } from '../../core/lan-service.ts';
import { isInstallerInitiated, type Pairing } from '../../core/pairings/pairing.ts';
import type { PairingBatch } from '../../core/pairings/pairing-batch.ts';
import { Secret } from '../../core/secret.ts';
import { unmapIpv4 } from '../../system/addresses.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { type PublicPage, sendMessagePage, sendPublicPage } from '../document.ts';
import { BROWSER_ROUTE, BROWSER_TOKEN_COOKIE, cookieValue, redirectToPortal, setCallbackCookie } from '../http.ts';
import { pageContext } from '../page-context.ts';
import type { Texts } from '../texts/en.ts';
import { loginMessage, pairingMessage } from './pairing-messages.ts';

/** Longer ones are no codes: the portal's are short. */
const MAX_CODE_LENGTH = 4096;
/** Bytes of the form that goes on to the next appliance. */
const MAX_FORM_BYTES = 1024;
/** The cookie of a browser that has brought an accepted code of a round: it may go on to the next login for an hour. */
const BATCH_PASS_COOKIE = 'latchkey-round';
/** Seconds after which the portal may be there again. */
const UNREACHABLE_RETRY_SECONDS = 5;

/**
 * The portal's redirect lands here (steady request flow). It is plain HTTP: the code in it is worth nothing without
 * the hub's secret, a browser would warn of the hub's own certificate in the middle of a login, and what comes is not believed
 * before the portal itself has served the same (`RedirectedCodes`).
 */
export function serveCallback(
  app: FastifyInstance,
  service: Pick<LanService, 'receiveCallback' | 'continueBatch' | 'browserBinding'>,
  hubName: string,
  httpsPort: number,
): void {
  app.get<{ Params: { nonce: string } }>('/callback/:nonce', async (request, reply) => {
    const { params, url } = request;
    const context = pageContext(hubName, request);
    const { result: texts } = context.texts;
    const refuse = (status: number, heading: string, text: string) =>
      sendMessagePage(reply, status, context, { severity: 'bad', heading, text });
    // Only the first "?" is a delimiter (RFC 3986, 3.4): a code may hold more of them.
    const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
    const callback = parseCallback(new URLSearchParams(query));
    if (callback === null) return refuse(400, texts.malformed, texts.malformedText);
    const found = await service.receiveCallback(params.nonce, callback, {
      address: unmapIpv4(request.socket.remoteAddress ?? ''),
      browserBinding: cookieValue(request, BROWSER_TOKEN_COOKIE),
      pass: cookieValue(request, BATCH_PASS_COOKIE),
    });
    if (found === null) return refuse(404, texts.unknownLink, texts.unknownLinkText);
    const { pairing, appliance } = found;
    if (callback.kind === 'nothing' && pairing.step.kind === 'waiting') {
      return refuse(400, texts.noCode, texts.noCodeText);
    }
    const { batch: round } = found;
    if (round?.batchToken) setCallbackCookie(reply, BATCH_PASS_COOKIE, round.batchToken);
    const home = `https://${request.hostname}:${httpsPort}`;
    const onHub = `${home}${round === null ? `/pairings/${pairing.id}` : `/rounds/${round.id}`}`;
    const page = round?.batch && batchResultPage({ ...found, round: round.batch }, params.nonce, onHub, context.texts);
    if (page) return sendPublicPage(reply, 200, context, page);
    if (found.login !== null && pairing.step.kind !== 'ended') {
      return sendMessagePage(reply, 200, context, loginMessage(found.login, appliance, context.texts));
    }
    // Who has begun it on the hub's page may have logged in in the same window.
    const isOver = pairing.step.kind === 'ended' && isInstallerInitiated(pairing);
    const link = { href: onHub, text: context.texts.round.openHubPage };
    return sendMessagePage(reply, 200, context, {
      ...pairingMessage(pairing, appliance, context.texts),
      ...(isOver && { link }),
    });
  });

  app.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'string', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  // The nonce entitles to nothing: whoever saw the link knows it.
  app.post<{ Params: { nonce: string } }>('/callback/:nonce/next', BROWSER_ROUTE, async (request, reply) => {
    const { nonce } = request.params;
    const context = pageContext(hubName, request);
    const again = new URLSearchParams(typeof request.body === 'string' ? request.body : '').get('again') === '1';
    const next = await service
      .continueBatch(nonce, again, cookieValue(request, BATCH_PASS_COOKIE))
      .catch((error: unknown) => {
        if (error instanceof Failure && error.code === 'not_allowed') return { kind: 'over' } as const;
        throw error;
      });
    switch (next.kind) {
      case 'link':
        return redirectToPortal(reply, service.browserBinding(next.pairing), next.authorizeUrl);
      case 'unreachable':
        reply.header('retry-after', UNREACHABLE_RETRY_SECONDS);
        return sendPublicPage(reply, 503, context, portalUnreachablePage(next.appliance, nonce, context.texts));
      case 'not_proved':
        return reply
          .header('cache-control', 'no-store')
          .redirect(`https://${request.hostname}:${httpsPort}/rounds/${next.batch}`, 303);
      case 'over':
        return sendMessagePage(reply, 200, context, {
          severity: 'neutral',
          heading: context.texts.round.ended,
          text: context.texts.round.endedText,
          link: { href: `https://${request.hostname}:${httpsPort}/`, text: context.texts.round.openHubPage },
        });
    }
  });
}

function parseCallback(query: URLSearchParams): AuthorizationResponse | null {
  const codes = query.getAll('code');
  const errors = query.getAll('error');
  const [code] = codes;
  const [error] = errors;
  if (codes.length + errors.length > 1 || (code ?? '').length > MAX_CODE_LENGTH || (error ?? '').length > 256)
    return null;
  if (code) return { kind: 'code', code: new Secret(code) };
  return error ? { kind: 'error', error } : { kind: 'nothing' };
}

/**
 * The last page of a login that was part of a round: how that one ended, and one tap to the next appliance.
 * @param nonce of the pairing
 * @param home the address of the hub's page
 * @returns null while the pairing has not ended: then it is told of like any other
 */
function batchResultPage(
  { pairing, appliance, round }: { pairing: Pairing; appliance: string; round: PairingBatch },
  nonce: string,
  home: string,
  { result, round: texts }: Texts,
): PublicPage | null {
  const { step } = pairing;
  if (step.kind !== 'ended') return null;
  const isPaired = step.result.kind === 'paired' || round.connected.includes(appliance);
  const current = round.current?.appliance ?? round.next;
  const buttons = [
    current !== null && current !== appliance ? renderNextLoginForm(nonce, false, texts.next(current)) : '',
    isPaired ? '' : renderNextLoginForm(nonce, true, texts.retry(appliance)),
  ].join('\n');
  const toHub = html`<p><a href="${home}">${texts.openHubPage}</a></p>`;
  if (step.result.kind === 'failed' && !isPaired) {
    return {
      heading: result.notConnected(appliance),
      severity: 'bad',
      hasForm: true,
      body: html`<p>${result.reasons[step.result.reason]}</p>!${buttons}!${toHub}`,
    };
  }
  if (current !== null) {
    return { heading: result.connected(appliance), severity: 'good', hasForm: true, body: html`!${buttons}!${toHub}` };
  }
  const all = round.connected.length + round.skipped.length;
  if (round.skipped.length === 0) {
    return { heading: texts.allConnected(all), severity: 'good', body: html`<p>${texts.mayClosePage}</p>!${toHub}` };
  }
  const left = round.skipped.map(({ name, reason }) => html`<p><b>${name}</b>: ${texts.reasons[reason]}</p>`);
  return {
    heading: texts.someConnected(round.connected.length, all),
    severity: 'neutral',
    body: html`!${left}!${toHub}`,
  };
}

/** The portal gave no link for the next appliance in time. */
function portalUnreachablePage(appliance: string, nonce: string, { round: texts, code }: Texts): PublicPage {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    hasForm: true,
    body: html`<p>${texts.unreachableText(appliance)}</p>!${renderNextLoginForm(nonce, false, code.tryAgain)}`,
  };
}

function renderNextLoginForm(nonce: string, isAgain: boolean, text: string): string {
  const again = isAgain ? html`<input type="hidden" name="again" value="1">` : '';
  return html`<form method="post" action="/callback/${encodeURIComponent(nonce)}/next">!${again}<button>${text}</button></form>`;
}
