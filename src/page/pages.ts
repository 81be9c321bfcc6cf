import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { LanService } from '../core/lan-service.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import type { LimitSurroundings } from '../system/address-limit.ts';
import { serveCallback } from './callback.ts';
import { sendNotice } from './document.ts';
import { frameFor } from './frame.ts';
import { servePairPage } from './pair-page.ts';
import { serveSignIn } from './sign-in.ts';

/** What the pages are made of. */
export interface PageOptions extends LimitSurroundings {
  readonly service: LanService;
  readonly administration: Administration;
  readonly access: SetupAccess;
  readonly hubName: string;
}

/** The pages of a hub, as its two listeners serve them. */
export interface Pages {
  /** @param httpsPort of the other listener */
  plain(app: FastifyInstance, httpsPort: number): void;
  secure(app: FastifyInstance): void;
  nothingHere(request: FastifyRequest, reply: FastifyReply): FastifyReply;
}

/** Everything that people come to with a browser. */
export function openPages(options: PageOptions): Pages {
  const { service, access, hubName } = options;
  return {
    plain(app, httpsPort) {
      serveCallback(app, service, hubName);
      app.get('/', { exposeHeadRoute: true }, async (request, reply) => {
        const frame = frameFor(hubName, request);
        const { insecure, goThere } = frame.texts.home;
        const link = { href: `https://${request.hostname}:${httpsPort}/`, text: goThere };
        return sendNotice(reply, 200, frame, { mood: 'neutral', heading: hubName, text: insecure, link });
      });
      // Typed in without "https://", it is still a person at the page that an appliance has named.
      app.get('/pair', { exposeHeadRoute: true }, async ({ hostname, url }, reply) =>
        reply.redirect(`https://${hostname}:${httpsPort}${url}`, 307),
      );
    },
    secure(app) {
      servePairPage(app, service, hubName, options);
      const guard = serveSignIn(app, access, hubName);
      guard.page('/', async ({ reply, frame }) =>
        sendNotice(reply, 200, frame, {
          mood: 'neutral',
          heading: hubName,
          text: 'This hub keeps the grants of the appliances in this home. Pair them with "latchkey pair" on the hub.',
          link: { href: '/pair', text: 'Does an appliance show a code? Connect it' },
        }),
      );
    },
    nothingHere(request, reply) {
      const frame = frameFor(hubName, request);
      const { nothingHere, nothingHereText } = frame.texts.home;
      return sendNotice(reply, 404, frame, { mood: 'bad', heading: nothingHere, text: nothingHereText });
    },
  };
}
