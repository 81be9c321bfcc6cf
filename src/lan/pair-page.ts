import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { LanService, UserCodeResult } from '../core/lan-service.ts';
import { readUserCode } from '../core/user-code.ts';
import { FormError, parseForm } from '../system/form.ts';
import { AddressLimit, type LimitSurroundings } from './limits.ts';
import { FORM } from './oauth/form-endpoint.ts';
import { readForm, UserCodeForm } from './oauth/schemas.ts';
import { sendNotice, sendPage } from './pages.ts';
import {
  codePage,
  confirmPage,
  FOREIGN,
  NOT_A_FORM,
  newerCode,
  TOO_MANY_OPEN,
  tooMany,
  UNREADABLE,
  unreachablePage,
} from './pair-documents.ts';
import { pairingNotice } from './pairing-notices.ts';

/** One device may try so many codes that nobody was given. */
const UNKNOWN_CODES = { most: 10, every: 6000 };

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
  surroundings: LimitSurroundings,
): void {
  const unknownCodes = new AddressLimit('too many unknown user codes', UNKNOWN_CODES, surroundings);

  /** What the code stands for; null where that has been answered. */
  async function found(userCode: string, request: FastifyRequest, reply: FastifyReply): Promise<UserCodeResult | null> {
    const address = request.socket.remoteAddress ?? '';
    const result = await service.pairingByUserCode(userCode);
    // Whoever has tried too many is told nothing of the right one either.
    const allowed = result === null ? unknownCodes.take(address) : unknownCodes.look(address);
    if (!allowed.ok) {
      reply.header('retry-after', allowed.retryAfter);
      sendNotice(reply, 429, hubName, tooMany(allowed.retryAfter));
      return null;
    }
    if (result !== null) return result;
    sendPage(reply, 404, hubName, codePage(userCode));
    return null;
  }

  app.get('/pair', { exposeHeadRoute: true }, async (request, reply) => {
    const userCode = codeOf(request.url.split('?').slice(1).join('?'));
    if (userCode instanceof FormError) return sendNotice(reply, 400, hubName, UNREADABLE);
    if (userCode === undefined) return sendPage(reply, 200, hubName, codePage(null));
    const result = await found(userCode, request, reply);
    if (result === null) return reply;
    const { pairing, appliance } = result;
    const { kind } = pairing.step;
    if (kind !== 'asking' && kind !== 'waiting') {
      return sendNotice(reply, 200, hubName, pairingNotice(pairing, appliance));
    }
    return pairing.device?.userCode === readUserCode(userCode)
      ? sendPage(reply, 200, hubName, confirmPage(pairing, appliance))
      : sendNotice(reply, 200, hubName, newerCode(appliance));
  });

  app.post('/pair', async (request, reply) => {
    if (!fromOwnPage(request)) return sendNotice(reply, 403, hubName, FOREIGN);
    const { body, headers } = request;
    const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
    if (type !== FORM) return sendNotice(reply, 415, hubName, NOT_A_FORM);
    const userCode = codeOf(typeof body === 'string' ? body : '');
    if (userCode instanceof FormError) return sendNotice(reply, 400, hubName, UNREADABLE);
    if (userCode === undefined) return reply.redirect('/pair', 303);
    const result = await found(userCode, request, reply);
    if (result === null) return reply;
    const link = await service.openLink(userCode);
    switch (link.kind) {
      case 'link':
        return reply.header('cache-control', 'no-store').redirect(link.authorizeUrl, 303);
      case 'unreachable':
        reply.header('retry-after', RETRY_UNREACHABLE);
        return sendPage(reply, 503, hubName, unreachablePage(userCode));
      case 'too_many':
        reply.header('retry-after', RETRY_TOO_MANY);
        return sendNotice(reply, 503, hubName, TOO_MANY_OPEN);
      case 'over':
        return reply.redirect(`/pair?user_code=${encodeURIComponent(userCode)}`, 303);
    }
  });
}

/** The user code of a query or a form; undefined where there is none. */
function codeOf(encoded: string): string | undefined | FormError {
  try {
    const read = readForm(UserCodeForm, parseForm(encoded));
    return read.kind === 'read' ? read.form.user_code : undefined;
  } catch (error) {
    if (error instanceof FormError) return error;
    throw error;
  }
}

/** Whether no other site's page has sent this: one that did could take a person's login for an appliance of its own. */
function fromOwnPage({ headers, host }: FastifyRequest): boolean {
  if (headers['sec-fetch-site'] === 'cross-site') return false;
  return headers.origin === undefined || headers.origin.toLowerCase() === `https://${host}`.toLowerCase();
}
