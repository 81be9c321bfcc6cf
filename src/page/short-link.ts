import type { FastifyInstance } from 'fastify';
import type { LanService } from '../core/lan-service.ts';
import { AddressLimit, type LimitSurroundings } from '../system/address-limit.ts';
import { pairingNotice } from './callback/pairing-notices.ts';
import { sendNotice } from './document.ts';
import { frameFor } from './frame.ts';
import { FOR_PEOPLE } from './routes-for-people.ts';

/** One device may try so many keys that nobody was given. */
const UNKNOWN_KEYS = { most: 10, every: 6000 };
/** Seconds after which a page that waits for the link looks again. */
const LOOK_AGAIN = 3;

/**
 * `/l/{key}`: what the QR code on a small terminal holds leads on to a pairing's link. It is plain HTTP, as the link tells no more
 * than what `latchkey pair` prints, and a browser would warn of the hub's own certificate on the way. It changes nothing, whoever
 * fetches it ahead.
 */
export function serveShortLink(
  app: FastifyInstance,
  service: Pick<LanService, 'pairingByShortKey'>,
  hubName: string,
  surroundings: LimitSurroundings,
): void {
  const unknownKeys = new AddressLimit('too many unknown short links', UNKNOWN_KEYS, surroundings);

  app.get<{ Params: { key: string } }>('/l/:key', { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
    const found = await service.pairingByShortKey(request.params.key);
    const address = request.socket.remoteAddress ?? '';
    // Whoever has tried too many is told nothing of the right one either.
    const allowed = found === null ? unknownKeys.take(address) : unknownKeys.look(address);
    const frame = frameFor(hubName, request);
    const { shortLink: texts, result } = frame.texts;
    if (!allowed.ok) {
      reply.header('retry-after', allowed.retryAfter);
      const text = texts.tooManyText(allowed.retryAfter);
      return sendNotice(reply, 429, frame, { mood: 'waiting', heading: texts.tooMany, text });
    }
    if (found === null) {
      return sendNotice(reply, 404, frame, { mood: 'bad', heading: result.unknown, text: result.unknownText });
    }
    const { pairing, appliance, authorizeUrl } = found;
    const { kind } = pairing.step;
    if (kind === 'exchanging' || kind === 'ended') {
      return sendNotice(reply, 200, frame, pairingNotice(pairing, appliance, frame.texts));
    }
    if (authorizeUrl === null) {
      const { asking: heading, askingText: text } = texts;
      return sendNotice(reply, 200, frame, { mood: 'waiting', heading, text, reloadAfter: LOOK_AGAIN });
    }
    return reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).redirect(authorizeUrl, 303);
  });
}
