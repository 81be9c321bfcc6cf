import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { sendMessagePage } from '../document.ts';
import { pageContext } from '../page-context.ts';
import { sendToPortal } from '../portal-link.ts';
import { pairingMessage } from './pairing-messages.ts';

/** A page that waits for the link reloads after this many seconds. */
const RELOAD_SECONDS = 3;

/**
 * Serves `/l/{key}`, the short link in the QR code on a small terminal, which redirects to the pairing link, or
 * shows the code to type there. It is plain HTTP: the link reveals no more than `latchkey pair` prints, and over HTTPS a browser would warn about the hub's
 * own certificate. A prefetch changes nothing. Wrong keys are not limited: a key of 96 bits cannot be guessed, and a
 * limit could be used up by any website in its visitor's browser, because over plain HTTP browsers send no Fetch
 * Metadata (Fetch Metadata, 2).
 */
export function serveShortLink(
  app: FastifyInstance,
  service: Pick<LanService, 'findPairingByShortKey' | 'browserToken'>,
  hubName: string,
): void {
  app.get<{ Params: { key: string } }>('/l/:key', { exposeHeadRoute: true }, async (request, reply) => {
    const found = await service.findPairingByShortKey(request.params.key);
    const context = pageContext(hubName, request);
    const { shortLink: texts, result } = context.texts;
    if (found === null) {
      return sendMessagePage(reply, 404, context, {
        severity: 'bad',
        heading: result.unknownLink,
        text: result.unknownLinkText,
      });
    }
    const { pairing, link } = found;
    const { kind } = pairing.step;
    if (kind === 'exchanging' || kind === 'ended') {
      return sendMessagePage(reply, 200, context, pairingMessage(pairing, found, context.texts));
    }
    if (link === null) {
      const { waitingForPortal: heading, waitingForPortalText: text } = texts;
      return sendMessagePage(reply, 200, context, {
        severity: 'waiting',
        heading,
        text,
        reloadAfter: RELOAD_SECONDS,
      });
    }
    return sendToPortal(reply, context, link, service.browserToken(pairing.id));
  });
}
