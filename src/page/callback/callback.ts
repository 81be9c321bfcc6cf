import type { FastifyInstance } from 'fastify';
import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { Callback, LanService } from '../../core/lan-service.ts';
import { isInstallerInitiated, type Pairing } from '../../core/pairings/pairing.ts';
import type { Round } from '../../core/pairings/round.ts';
import { Secret } from '../../core/secret.ts';
import { withoutMapping } from '../../system/addresses.ts';
import { FORM } from '../../system/http/form.ts';
import { type Page, sendNotice, sendPage } from '../document.ts';
import { cookieValue, FOR_PEOPLE, keepForCallback, SENT_COOKIE, sendToPortal } from '../http.ts';
import { pageContext } from '../page-context.ts';
import type { Texts } from '../texts/en.ts';
import { loginNotice, pairingNotice } from './pairing-notices.ts';

/** Longer ones are no codes: the portal's are short. */
const MAX_CODE_LENGTH = 4096;
/** Bytes of the form that goes on to the next appliance. */
const MAX_FORM_BYTES = 1024;
/** The cookie of a browser that has brought an accepted code of a round: it may go on to the next login for an hour. */
const COOKIE = 'latchkey-round';
/** Seconds after which the portal may be there again. */
const RETRY_UNREACHABLE = 5;

/**
 * The portal's redirect lands here (steady request flow). It is plain HTTP: the code in it is worth nothing without
 * the hub's secret, a browser would warn of the hub's own certificate in the middle of a login, and what comes is not believed
 * before the portal itself has served the same (`RedirectedCodes`).
 */
export function serveCallback(
  app: FastifyInstance,
  service: Pick<LanService, 'receiveCallback' | 'goOnInRound' | 'sentMark'>,
  hubName: string,
  httpsPort: number,
): void {
  app.get<{ Params: { nonce: string } }>('/callback/:nonce', async (request, reply) => {
    const { params, url } = request;
    const context = pageContext(hubName, request);
    const { result: texts } = context.texts;
    const refuse = (status: number, heading: string, text: string) =>
      sendNotice(reply, status, context, { severity: 'bad', heading, text });
    // Only the first "?" is a delimiter (RFC 3986, 3.4): a code may hold more of them.
    const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
    const callback = read(new URLSearchParams(query));
    if (callback === null) return refuse(400, texts.malformed, texts.malformedText);
    const found = await service.receiveCallback(params.nonce, callback, {
      address: withoutMapping(request.socket.remoteAddress ?? ''),
      mark: cookieValue(request, SENT_COOKIE),
      pass: cookieValue(request, COOKIE),
    });
    if (found === null) return refuse(404, texts.unknown, texts.unknownText);
    const { pairing, appliance } = found;
    if (callback.kind === 'nothing' && pairing.step.kind === 'waiting') {
      return refuse(400, texts.noCode, texts.noCodeText);
    }
    const { round } = found;
    if (round?.pass) keepForCallback(reply, COOKIE, round.pass);
    const home = `https://${request.hostname}:${httpsPort}`;
    const onHub = `${home}${round === null ? `/pairings/${pairing.id}` : `/rounds/${round.id}`}`;
    const page = round?.round && roundResultPage({ ...found, round: round.round }, params.nonce, onHub, context.texts);
    if (page) return sendPage(reply, 200, context, page);
    if (found.login !== null && pairing.step.kind !== 'ended') {
      return sendNotice(reply, 200, context, loginNotice(found.login, appliance, context.texts));
    }
    // Who has begun it on the hub's page may have logged in in the same window.
    const isOver = pairing.step.kind === 'ended' && isInstallerInitiated(pairing);
    const link = { href: onHub, text: context.texts.round.toHub };
    return sendNotice(reply, 200, context, {
      ...pairingNotice(pairing, appliance, context.texts),
      ...(isOver && { link }),
    });
  });

  app.addContentTypeParser(FORM, { parseAs: 'string', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  // The nonce entitles to nothing: whoever saw the link knows it.
  app.post<{ Params: { nonce: string } }>('/callback/:nonce/next', FOR_PEOPLE, async (request, reply) => {
    const { nonce } = request.params;
    const context = pageContext(hubName, request);
    const again = new URLSearchParams(typeof request.body === 'string' ? request.body : '').get('again') === '1';
    const next = await service.goOnInRound(nonce, again, cookieValue(request, COOKIE)).catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'not_allowed') return { kind: 'over' } as const;
      throw error;
    });
    switch (next.kind) {
      case 'link':
        return sendToPortal(reply, service.sentMark(next.pairing), next.authorizeUrl);
      case 'unreachable':
        reply.header('retry-after', RETRY_UNREACHABLE);
        return sendPage(reply, 503, context, nextUnreachablePage(next.appliance, nonce, context.texts));
      case 'not_proved':
        return reply
          .header('cache-control', 'no-store')
          .redirect(`https://${request.hostname}:${httpsPort}/rounds/${next.round}`, 303);
      case 'over':
        return sendNotice(reply, 200, context, {
          severity: 'neutral',
          heading: context.texts.round.over,
          text: context.texts.round.overText,
          link: { href: `https://${request.hostname}:${httpsPort}/`, text: context.texts.round.toHub },
        });
    }
  });
}

function read(query: URLSearchParams): Callback | null {
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
function roundResultPage(
  { pairing, appliance, round }: { pairing: Pairing; appliance: string; round: Round },
  nonce: string,
  home: string,
  { result, round: texts }: Texts,
): Page | null {
  const { step } = pairing;
  if (step.kind !== 'ended') return null;
  const isPaired = step.result.kind === 'paired' || round.connected.includes(appliance);
  const current = round.current?.appliance ?? round.next;
  const buttons = [
    current !== null && current !== appliance ? goOn(nonce, false, texts.next(current)) : '',
    isPaired ? '' : goOn(nonce, true, texts.again(appliance)),
  ].join('\n');
  const toHub = html`<p><a href="${home}">${texts.toHub}</a></p>`;
  if (step.result.kind === 'failed' && !isPaired) {
    return {
      heading: result.notConnected(appliance),
      severity: 'bad',
      form: true,
      body: html`<p>${result.reasons[step.result.reason]}</p>!${buttons}!${toHub}`,
    };
  }
  if (current !== null) {
    return { heading: result.connected(appliance), severity: 'good', form: true, body: html`!${buttons}!${toHub}` };
  }
  const all = round.connected.length + round.leftOut.length;
  if (round.leftOut.length === 0) {
    return { heading: texts.done(all), severity: 'good', body: html`<p>${texts.closing}</p>!${toHub}` };
  }
  const left = round.leftOut.map(({ name, reason }) => html`<p><b>${name}</b>: ${texts.reasons[reason]}</p>`);
  return { heading: texts.notAll(round.connected.length, all), severity: 'neutral', body: html`!${left}!${toHub}` };
}

/** The portal gave no link for the next appliance in time. */
function nextUnreachablePage(appliance: string, nonce: string, { round: texts, code }: Texts): Page {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    form: true,
    body: html`<p>${texts.unreachableText(appliance)}</p>!${goOn(nonce, false, code.tryAgain)}`,
  };
}

function goOn(nonce: string, isAgain: boolean, text: string): string {
  const again = isAgain ? html`<input type="hidden" name="again" value="1">` : '';
  return html`<form method="post" action="/callback/${encodeURIComponent(nonce)}/next">!${again}<button>${text}</button></form>`;
}
