import type { FastifyInstance } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { Callback, LanService } from '../../core/lan-service.ts';
import { isInstallerInitiated } from '../../core/pairings/pairing.ts';
import { Secret } from '../../core/secret.ts';
import { withoutMapping } from '../../system/addresses.ts';
import { FORM } from '../../system/http/form.ts';
import { sendNotice, sendPage } from '../document.ts';
import { cookieValue, FOR_PEOPLE, keepForCallback, SENT_COOKIE, sendToPortal } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { nextUnreachablePage, roundResultPage } from './callback-round.ts';
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
