import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Random } from '../core/random.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import type { RateLimiterContext } from '../system/limits/client-rate-limiter.ts';
import { ShownCredentials } from './adding/shown-credentials.ts';
import { serveCallback } from './callback/callback.ts';
import { sendNotice } from './document.ts';
import { frameFor } from './frame.ts';
import { serveInstaller } from './installer.ts';
import { Live } from './live/live.ts';
import { serveShortLink } from './short-link.ts';
import { serveSignIn } from './sign-in/sign-in.ts';
import { servePairPage } from './user-code/pair-page.ts';

/** What the pages are made of. */
export interface PageOptions extends RateLimiterContext {
  readonly service: LanService;
  readonly administration: Administration;
  readonly access: SetupAccess;
  readonly hubName: string;
  /** Resolves when the pairings of the last run are taken up. */
  readonly ready: Promise<void>;
  readonly timers: Timers;
  readonly random: Random;
}

/** The pages of a hub, as its two listeners serve them. */
export interface Pages {
  /** @param httpsPort of the other listener */
  plain(app: FastifyInstance, httpsPort: number): void;
  secure(app: FastifyInstance): void;
  /** @param status 404, or 405 where there is something for forms and programs alone */
  nothingHere(request: FastifyRequest, reply: FastifyReply, status: 404 | 405): FastifyReply;
  /** Lets go of the pages that follow the hub: nothing waits for them then. */
  close(): void;
}

/** Everything that people come to with a browser. */
export function openPages(options: PageOptions): Pages {
  const { service, access, hubName } = options;
  const live = new Live(options);
  const shown = new ShownCredentials(options);
  return {
    plain(app, httpsPort) {
      serveCallback(app, service, hubName, httpsPort);
      serveShortLink(app, service, hubName);
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
      const guard = serveSignIn(app, access, hubName, options.ready);
      serveInstaller(app, guard, { ...options, live, shown });
    },
    nothingHere(request, reply, status) {
      const frame = frameFor(hubName, request);
      const { nothingHere, nothingHereText } = frame.texts.home;
      const link = { href: '/', text: frame.texts.round.toHub };
      return sendNotice(reply, status, frame, { mood: 'bad', heading: nothingHere, text: nothingHereText, link });
    },
    close() {
      live.close();
      shown.close();
    },
  };
}
