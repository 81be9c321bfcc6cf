import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Random } from '../core/random.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import type { RateLimiterContext } from '../system/limits/client-rate-limiter.ts';
import { serveAddAppliance } from './add-appliance/add-appliance.ts';
import { serveCredentials } from './add-appliance/credentials.ts';
import { CredentialsCache } from './add-appliance/credentials-cache.ts';
import { serveAppliances } from './appliance/appliance.ts';
import { serveCallback } from './callback/callback.ts';
import { serveShortLink } from './callback/short-link.ts';
import { sendMessagePage } from './document.ts';
import { LiveUpdates } from './live-updates.ts';
import { serveOverview } from './overview/overview.ts';
import { pageContext } from './page-context.ts';
import { servePairing } from './pairing/pairing.ts';
import { serveScripts } from './scripts.ts';
import { serveSignIn } from './sign-in/sign-in.ts';
import { serveSignedInBrowsers } from './sign-in/signed-in-browsers.ts';
import { servePairPage } from './user-code/pair-page.ts';

/** What the pages are made of. */
export interface PagesOptions extends RateLimiterContext {
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
  registerHttpRoutes(app: FastifyInstance, httpsPort: number): void;
  registerHttpsRoutes(app: FastifyInstance): void;
  /** @param status 404, or 405 where there is something for forms and programs alone */
  sendNotFound(request: FastifyRequest, reply: FastifyReply, status: 404 | 405): FastifyReply;
  /** Lets go of the pages that follow the hub: nothing waits for them then. */
  close(): void;
}

/** Everything that people come to with a browser. */
export function openPages(options: PagesOptions): Pages {
  const { service, access, hubName } = options;
  const live = new LiveUpdates(options);
  const shown = new CredentialsCache(options);
  return {
    registerHttpRoutes(app, httpsPort) {
      serveCallback(app, service, hubName, httpsPort);
      serveShortLink(app, service, hubName);
      app.get('/', { exposeHeadRoute: true }, async (request, reply) => {
        const context = pageContext(hubName, request);
        const { httpsOnly: insecure, openSecurePage: goThere } = context.texts.home;
        const link = { href: `https://${request.hostname}:${httpsPort}/`, text: goThere };
        return sendMessagePage(reply, 200, context, { severity: 'neutral', heading: hubName, text: insecure, link });
      });
      // Typed in without "https://", it is still a person at the page that an appliance has named.
      app.get('/pair', { exposeHeadRoute: true }, async ({ hostname, url }, reply) =>
        reply.redirect(`https://${hostname}:${httpsPort}${url}`, 307),
      );
    },
    registerHttpsRoutes(app) {
      servePairPage(app, service, hubName, options);
      const guard = serveSignIn(app, access, hubName, options.ready);
      serveScripts(app);
      live.serve(guard);
      serveOverview(guard, options);
      serveAddAppliance(guard, { ...options, cache: shown });
      serveCredentials(guard, { ...options, cache: shown });
      serveAppliances(guard, options);
      servePairing(guard, options);
      serveSignedInBrowsers(guard, options);
    },
    sendNotFound(request, reply, status) {
      const context = pageContext(hubName, request);
      const { notFound: nothingHere, notFoundText: nothingHereText } = context.texts.home;
      const link = { href: '/', text: context.texts.round.openHubPage };
      return sendMessagePage(reply, status, context, {
        severity: 'bad',
        heading: nothingHere,
        text: nothingHereText,
        link,
      });
    },
    close() {
      live.close();
      shown.close();
    },
  };
}
