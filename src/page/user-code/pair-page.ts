import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../../core/administration.ts';
import type { FoundDeviceFlow, LanService } from '../../core/lan-service.ts';
import type { SetupAccess } from '../../core/setup-access.ts';
import {
  ClientRateLimiter,
  type RateLimiterContext,
  WRONG_CODE_LIMIT,
} from '../../system/limits/client-rate-limiter.ts';
import { pairingMessage } from '../callback/pairing-messages.ts';
import { sendMessagePage, sendPublicPage } from '../document.ts';
import { readFormBody, readQuery } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { userCodePath } from '../paths.ts';
import { sendToPortal } from '../portal-link.ts';
import { isCrossSiteEmbedding, isCrossSiteNavigation, isSameOrigin } from '../request-origin.ts';
import { readSessionCookie, sendCsrfFailure, sendFormError } from '../sign-in/sign-in-responses.ts';
import { sendApprovalPage } from './approval.ts';
import {
  approvalNeededPage,
  codeReplacedMessage,
  hasCurrentCode,
  portalUnreachablePage,
  tooManyAttemptsMessage,
  userCodeConfirmationPage,
  userCodePage,
} from './user-code-pages.ts';

/** `Retry-After` while the portal is unreachable, in seconds. */
const UNREACHABLE_RETRY_SECONDS = 5;

/** What the verification page needs. */
interface PairPageOptions extends RateLimiterContext {
  readonly access: Pick<SetupAccess, 'findSession'>;
  readonly administration: Pick<Administration, 'status'>;
}

/**
 * Serves the verification page of the device flow (RFC 8628, 3.3): it takes the user code, names its appliance, and
 * redirects to the portal. A GET changes nothing, because mail programs and messengers open links too.
 */
export function servePairPage(
  app: FastifyInstance,
  service: LanService,
  hubName: string,
  { access, administration, ...environment }: PairPageOptions,
): void {
  const unknownCodes = new ClientRateLimiter('too_many_unknown_user_codes', WRONG_CODE_LIMIT, environment);

  /** The pairing of a user code; null if there is none or too many were tried, and then the response has been sent. */
  async function findPairing(
    userCode: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FoundDeviceFlow | null> {
    const address = request.socket.remoteAddress ?? '';
    const before = unknownCodes.peek(address);
    const result = before.ok ? await service.findPairingByUserCode(userCode) : null;
    // After too many unknown codes, an address gets the same response for a valid one. Others may have come meanwhile.
    const after = () => (result === null ? unknownCodes.take(address) : unknownCodes.peek(address));
    const allowed = before.ok ? after() : before;
    if (!allowed.ok) {
      reply.header('retry-after', allowed.retryAfter);
      const context = pageContext(hubName, request);
      sendMessagePage(reply, 429, context, tooManyAttemptsMessage(allowed.retryAfter, context.texts));
      return null;
    }
    if (result !== null) return result;
    const context = pageContext(hubName, request);
    sendPublicPage(reply, 404, context, userCodePage({ kind: 'wrong', code: userCode }, context.texts));
    return null;
  }

  function sessionOf(request: FastifyRequest) {
    const cookie = readSessionCookie(request);
    return cookie === null ? null : access.findSession(cookie);
  }

  app.get('/pair', { exposeHeadRoute: true }, async (request, reply) => {
    const context = pageContext(hubName, request);
    // Requests of another site's page are not counted: they would use up its visitor's tries.
    if (isCrossSiteEmbedding(request)) return sendCsrfFailure(reply, context, '/pair');
    const query = readQuery(request);
    if (query === null) return sendFormError(reply, 400, context, '/pair');
    const userCode = query.get('user_code');
    if (userCode === undefined)
      return sendPublicPage(reply, 200, context, userCodePage({ kind: 'none' }, context.texts));
    // A link on another site is not counted either: the person checks the code and continues from the hub's own page.
    if (isCrossSiteNavigation(request))
      return sendPublicPage(reply, 200, context, userCodePage({ kind: 'unchecked', code: userCode }, context.texts));
    const result = await findPairing(userCode, request, reply);
    if (result === null) return reply;
    const { pairing, appliance, isApprovable, needsInstaller } = result;
    const { kind } = pairing.step;
    if (kind !== 'asking' && kind !== 'waiting') {
      // Only about the appliance that shows the code, whoever else uses its connection.
      const paired = { ...result, users: [appliance] };
      return sendMessagePage(reply, 200, context, pairingMessage(pairing, paired, context.texts));
    }
    if (!hasCurrentCode(pairing, userCode))
      return sendMessagePage(reply, 200, context, codeReplacedMessage(appliance.title, context.texts));
    const session = sessionOf(request);
    if (isApprovable && session !== null) return sendApprovalPage({ reply, context, session }, administration, result);
    const page =
      isApprovable || (needsInstaller && session === null)
        ? approvalNeededPage(result, context.texts)
        : userCodeConfirmationPage(result, context.texts);
    return sendPublicPage(reply, 200, context, page);
  });

  app.post('/pair', async (request, reply) => {
    const context = pageContext(hubName, request);
    if (!isSameOrigin(request)) return sendCsrfFailure(reply, context, '/pair');
    const form = readFormBody(request);
    if (typeof form === 'number') return sendFormError(reply, form, context, '/pair');
    const userCode = form.get('user_code');
    if (userCode === undefined) return reply.redirect('/pair', 303);
    const result = await findPairing(userCode, request, reply);
    if (result === null) return reply;
    const isForInstaller = result.isApprovable || sessionOf(request) === null;
    if (result.needsInstaller && isForInstaller) return reply.redirect(userCodePath(userCode), 303);
    const link = await service.requestLoginLink(userCode);
    switch (link.kind) {
      case 'link':
        return sendToPortal(reply, context, link, service.browserToken(result.pairing.id), {
          note: context.texts.portalCode.notOfAppliance,
        });
      case 'unreachable':
        reply.header('retry-after', UNREACHABLE_RETRY_SECONDS);
        return sendPublicPage(reply, 503, context, portalUnreachablePage(userCode, context.texts));
      case 'over':
        return reply.redirect(userCodePath(userCode), 303);
    }
  });
}
