import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { sendNotice } from '../document.ts';
import { FOR_PEOPLE, sendToPortal } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { pairingNotice } from './pairing-notices.ts';

/** Seconds after which a page that waits for the link looks again. */
const LOOK_AGAIN = 3;

/**
 * `/l/{key}`: what the QR code on a small terminal holds leads on to a pairing's link. It is plain HTTP, as the link tells no more
 * than what `latchkey pair` prints, and a browser would warn of the hub's own certificate on the way. It changes nothing, whoever
 * fetches it ahead. Nobody finds a key (96 bits) by trying, so wrong ones cost nobody anything: any page on the web could have its
 * visitor's browser ask for such, and over plain HTTP no browser says whose page asks (Fetch Metadata, 2).
 */
export function serveShortLink(
  app: FastifyInstance,
  service: Pick<LanService, 'pairingByShortKey' | 'sentMark'>,
  hubName: string,
): void {
  app.get<{ Params: { key: string } }>('/l/:key', { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
    const found = await service.pairingByShortKey(request.params.key);
    const context = pageContext(hubName, request);
    const { shortLink: texts, result } = context.texts;
    if (found === null) {
      return sendNotice(reply, 404, context, { severity: 'bad', heading: result.unknown, text: result.unknownText });
    }
    const { pairing, appliance, authorizeUrl } = found;
    const { kind } = pairing.step;
    if (kind === 'exchanging' || kind === 'ended') {
      return sendNotice(reply, 200, context, pairingNotice(pairing, appliance, context.texts));
    }
    if (authorizeUrl === null) {
      const { asking: heading, askingText: text } = texts;
      return sendNotice(reply, 200, context, { severity: 'waiting', heading, text, reloadAfter: LOOK_AGAIN });
    }
    return sendToPortal(reply, service.sentMark(pairing.id), authorizeUrl);
  });
}
