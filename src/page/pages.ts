import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Random } from '../core/random.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import type { RateLimiterContext } from '../system/limits/client-rate-limiter.ts';
import { serveAddAppliance } from './add-appliance/add-appliance.ts';
import { serveCredentials } from './add-appliance/credentials.ts';
import { ShownCredentials } from './add-appliance/shown-credentials.ts';
import { serveAppliances } from './appliance/appliance.ts';
import { serveCallback } from './callback/callback.ts';
import { serveShortLink } from './callback/short-link.ts';
import { sendNotice } from './document.ts';
import { Live } from './live.ts';
import { serveOverview } from './overview/overview.ts';
import { pageContext } from './page-context.ts';
import { servePairing } from './pairing/pairing.ts';
import { serveScripts } from './scripts.ts';
import { serveBrowsers } from './sign-in/browsers.ts';
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
        const context = pageContext(hubName, request);
        const { insecure, goThere } = context.texts.home;
        const link = { href: `https://${request.hostname}:${httpsPort}/`, text: goThere };
        return sendNotice(reply, 200, context, { severity: 'neutral', heading: hubName, text: insecure, link });
      });
      // Typed in without "https://", it is still a person at the page that an appliance has named.
      app.get('/pair', { exposeHeadRoute: true }, async ({ hostname, url }, reply) =>
        reply.redirect(`https://${hostname}:${httpsPort}${url}`, 307),
      );
    },
    secure(app) {
      servePairPage(app, service, hubName, options);
      const guard = serveSignIn(app, access, hubName, options.ready);
      serveScripts(app);
      live.serve(guard);
      serveOverview(guard, options);
      serveAddAppliance(guard, { ...options, shown });
      serveCredentials(guard, { ...options, shown });
      serveAppliances(guard, options);
      servePairing(guard, options);
      serveBrowsers(guard, options);
    },
    nothingHere(request, reply, status) {
      const context = pageContext(hubName, request);
      const { nothingHere, nothingHereText } = context.texts.home;
      const link = { href: '/', text: context.texts.round.toHub };
      return sendNotice(reply, status, context, { severity: 'bad', heading: nothingHere, text: nothingHereText, link });
    },
    close() {
      live.close();
      shown.close();
    },
  };
}
