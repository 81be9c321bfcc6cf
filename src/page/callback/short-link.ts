import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { sendMessagePage } from '../document.ts';
import { BROWSER_ROUTE, redirectToPortal } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { pairingMessage } from './pairing-messages.ts';

/** Seconds after which a page that waits for the link looks again. */
const RELOAD_SECONDS = 3;

/**
 * `/l/{key}`: what the QR code on a small terminal holds leads on to a pairing's link. It is plain HTTP, as the link tells no more
 * than what `latchkey pair` prints, and a browser would warn of the hub's own certificate on the way. It changes nothing, whoever
 * fetches it ahead. Nobody finds a key (96 bits) by trying, so wrong ones cost nobody anything: any page on the web could have its
 * visitor's browser ask for such, and over plain HTTP no browser says whose page asks (Fetch Metadata, 2).
 */
export function serveShortLink(
  app: FastifyInstance,
  service: Pick<LanService, 'findPairingByShortKey' | 'browserBinding'>,
  hubName: string,
): void {
  app.get<{ Params: { key: string } }>(
    '/l/:key',
    { ...BROWSER_ROUTE, exposeHeadRoute: true },
    async (request, reply) => {
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
      const { pairing, appliance, authorizeUrl } = found;
      const { kind } = pairing.step;
      if (kind === 'exchanging' || kind === 'ended') {
        return sendMessagePage(reply, 200, context, pairingMessage(pairing, appliance, context.texts));
      }
      if (authorizeUrl === null) {
        const { waitingForPortal: heading, waitingForPortalText: text } = texts;
        return sendMessagePage(reply, 200, context, {
          severity: 'waiting',
          heading,
          text,
          reloadAfter: RELOAD_SECONDS,
        });
      }
      return redirectToPortal(reply, service.browserBinding(pairing.id), authorizeUrl);
    },
  );
}
