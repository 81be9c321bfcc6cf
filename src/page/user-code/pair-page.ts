import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { LanService, UserCodeResult } from '../../core/lan-service.ts';
import { USER_CODE } from '../../core/letter-code.ts';
import { ClientRateLimiter, type RateLimiterContext } from '../../system/limits/client-rate-limiter.ts';
import { pairingNotice } from '../callback/pairing-notices.ts';
import { sendNotice, sendPage } from '../document.ts';
import { readForm, readQuery, sendToPortal } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { isCrossSiteNavigation, isEmbeddedElsewhere, isSameOrigin } from '../request-origin.ts';
import {
  codePage,
  confirmPage,
  foreign,
  newerCode,
  notForm,
  tooMany,
  tooManyOpen,
  unreachablePage,
  unreadable,
} from './pair-documents.ts';

/** One device may try so many codes that nobody was given. */
const UNKNOWN_CODES = { burst: 10, interval: 6000 };

/** Seconds after which the portal may be there again. */
const RETRY_UNREACHABLE = 5;
/** Seconds after which one of too many pairings has ended. */
const RETRY_TOO_MANY = 60;

/**
 * The verification page of the device flow (RFC 8628, 3.3): takes the user code, names the appliance that it was given
 * to, and goes on to the portal. What comes by GET touches nothing: links are opened by mail programs and messengers too.
 */
export function servePairPage(
  app: FastifyInstance,
  service: LanService,
  hubName: string,
  environment: RateLimiterContext,
): void {
  const unknownCodes = new ClientRateLimiter('too_many_unknown_user_codes', UNKNOWN_CODES, environment);

  /** What the code stands for; null where that has been answered. */
  async function found(userCode: string, request: FastifyRequest, reply: FastifyReply): Promise<UserCodeResult | null> {
    const address = request.socket.remoteAddress ?? '';
    const result = await service.pairingByUserCode(userCode);
    // Whoever has tried too many is told nothing of the right one either.
    const allowed = result === null ? unknownCodes.take(address) : unknownCodes.look(address);
    if (!allowed.ok) {
      reply.header('retry-after', allowed.retryAfter);
      const context = pageContext(hubName, request);
      sendNotice(reply, 429, context, tooMany(allowed.retryAfter, context.texts));
      return null;
    }
    if (result !== null) return result;
    const context = pageContext(hubName, request);
    sendPage(reply, 404, context, codePage({ kind: 'wrong', code: userCode }, context.texts));
    return null;
  }

  app.get('/pair', { exposeHeadRoute: true }, async (request, reply) => {
    const context = pageContext(hubName, request);
    // What another site's page loads is not counted: it would use up its visitor's tries.
    if (isEmbeddedElsewhere(request)) return sendNotice(reply, 403, context, foreign(context.texts));
    const query = readQuery(request);
    if (query === null) return sendNotice(reply, 400, context, unreadable(context.texts));
    const userCode = query.get('user_code');
    if (userCode === undefined) return sendPage(reply, 200, context, codePage({ kind: 'none' }, context.texts));
    // Nor is where it leads the browser: the person looks at the code, and goes on from the hub's own page.
    if (isCrossSiteNavigation(request))
      return sendPage(reply, 200, context, codePage({ kind: 'unchecked', code: userCode }, context.texts));
    const result = await found(userCode, request, reply);
    if (result === null) return reply;
    const { pairing, appliance } = result;
    const { kind } = pairing.step;
    if (kind !== 'asking' && kind !== 'waiting') {
      return sendNotice(reply, 200, context, pairingNotice(pairing, appliance, context.texts));
    }
    return pairing.device?.userCode === USER_CODE.read(userCode)
      ? sendPage(reply, 200, context, confirmPage(pairing, appliance, context.texts))
      : sendNotice(reply, 200, context, newerCode(appliance, context.texts));
  });

  app.post('/pair', async (request, reply) => {
    const context = pageContext(hubName, request);
    if (!isSameOrigin(request)) return sendNotice(reply, 403, context, foreign(context.texts));
    const form = readForm(request);
    if (form === 415) return sendNotice(reply, 415, context, notForm(context.texts));
    if (form === 400) return sendNotice(reply, 400, context, unreadable(context.texts));
    const userCode = form.get('user_code');
    if (userCode === undefined) return reply.redirect('/pair', 303);
    const result = await found(userCode, request, reply);
    if (result === null) return reply;
    const link = await service.openLink(userCode);
    switch (link.kind) {
      case 'link':
        return sendToPortal(reply, service.sentMark(result.pairing.id), link.authorizeUrl);
      case 'unreachable':
        reply.header('retry-after', RETRY_UNREACHABLE);
        return sendPage(reply, 503, context, unreachablePage(userCode, context.texts));
      case 'too_many':
        reply.header('retry-after', RETRY_TOO_MANY);
        return sendNotice(reply, 503, context, tooManyOpen(context.texts));
      case 'over':
        return reply.redirect(`/pair?user_code=${encodeURIComponent(userCode)}`, 303);
    }
  });
}
