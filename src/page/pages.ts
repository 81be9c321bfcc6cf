import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Named } from '../core/name.ts';
import type { Random } from '../core/random.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import { FORM_MEDIA_TYPE } from '../system/http/form.ts';
import type { RateLimiterContext } from '../system/limits/client-rate-limiter.ts';
import { serveAddAppliance } from './add-appliance/add-appliance.ts';
import { serveCredentials } from './add-appliance/credentials.ts';
import { serveAppliances } from './appliance/appliance.ts';
import { serveCallback, serveNextLogin, serveStatefulCallback } from './callback/callback.ts';
import { serveShortLink } from './callback/short-link.ts';
import { serveAddConnection } from './connection/add-connection.ts';
import { serveConnections } from './connection/connection.ts';
import { sendMessagePage } from './document.ts';
import { ingressAuthentication } from './ingress/ingress-authentication.ts';
import { acceptIngressRequests } from './ingress/ingress-hooks.ts';
import { LiveUpdates } from './live-updates.ts';
import { serveOverview } from './overview/overview.ts';
import { pageContext } from './page-context.ts';
import { LoginHosts } from './pairing/login-hosts.ts';
import { servePairing } from './pairing/pairing.ts';
import { servePortals } from './portals/portals.ts';
import { serveScripts } from './scripts.ts';
import { type IssuedByForm, SentForms } from './sent-forms.ts';
import { AuthenticatedRoutes } from './sign-in/authenticated-routes.ts';
import { serveSetupCode } from './sign-in/setup-code.ts';
import { serveSignIn } from './sign-in/sign-in.ts';
import { serveSignedInBrowsers } from './sign-in/signed-in-browsers.ts';
import { serveDeviceFlowApproval } from './user-code/approval.ts';
import { servePairPage } from './user-code/pair-page.ts';

/** Bytes of a form on the HTTP listener: the one that continues with the next appliance. */
const MAX_FORM_BYTES = 1024;

/** What the pages need. */
export interface PagesOptions extends RateLimiterContext {
  readonly service: LanService;
  readonly administration: Administration;
  readonly access: SetupAccess;
  readonly hubName: string;
  /** Resolves when the pairings of the last run have been resumed. */
  readonly ready: Promise<void>;
  readonly timers: Timers;
  readonly random: Random;
  /** The users of the reverse proxy who may open the page; left out or empty for all of them. */
  readonly ingressUsers?: readonly string[];
  /** Whether notices go anywhere else than to the page. */
  readonly sendsNotices?: boolean;
}

/** The pages of a hub, for each of its listeners. */
export interface Pages {
  /** @param httpsPort the port of the HTTPS listener */
  registerHttpRoutes(app: FastifyInstance, httpsPort: number): void;
  registerHttpsRoutes(app: FastifyInstance): void;
  /** The installer's page alone, for a reverse proxy that signs its users in. */
  registerIngressRoutes(app: FastifyInstance): void;
  /** @param status 404, or 405 if the path exists for other methods only */
  sendNotFound(request: FastifyRequest, reply: FastifyReply, status: 404 | 405): FastifyReply;
  /** Ends the streams of live updates, so that a shutdown does not wait for them. */
  close(): void;
}

/** Creates the pages that people open in a browser. */
export function openPages(options: PagesOptions): Pages {
  const { service, access, hubName, ingressUsers = [] } = options;
  const live = new LiveUpdates(options);
  const issued = new SentForms<IssuedByForm>(options.timers);
  const added = new SentForms<Named>(options.timers);
  const hosts = new LoginHosts();
  const services = { ...options, issued, added, hosts };

  /** The pages that the hub's own address and a reverse proxy show alike. */
  function serveInstallerPages(app: FastifyInstance, guard: AuthenticatedRoutes): void {
    serveScripts(app);
    live.serve(guard);
    serveOverview(guard, services);
    serveAddAppliance(guard, services);
    serveCredentials(guard, services);
    serveAppliances(guard, services);
    serveAddConnection(guard, services);
    serveConnections(guard, services);
    servePortals(guard, services);
    servePairing(guard, services);
    serveDeviceFlowApproval(guard, services);
  }

  return {
    registerHttpRoutes(app, httpsPort) {
      const hubUrl = ({ hostname }: FastifyRequest, path: string) => hosts.urlOf(path, `${hostname}:${httpsPort}`);
      app.addContentTypeParser(
        FORM_MEDIA_TYPE,
        { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
        (_request, body, done) => done(null, body),
      );
      serveCallback(app, service, hubName, hubUrl);
      serveStatefulCallback(app, service, hubName, hubUrl);
      serveNextLogin(app, service, hubName, hubUrl);
      serveShortLink(app, service, hubName);
      app.get('/', { exposeHeadRoute: true }, async (request, reply) => {
        const context = pageContext(hubName, request);
        const { httpsOnly, openSecurePage } = context.texts.landing;
        const link = { href: `https://${request.hostname}:${httpsPort}/`, text: openSecurePage };
        return sendMessagePage(reply, 200, context, { severity: 'neutral', heading: hubName, text: httpsOnly, link });
      });
      // A person may type the address that an appliance shows without "https://".
      app.get('/pair', { exposeHeadRoute: true }, async ({ hostname, url }, reply) =>
        reply.redirect(`https://${hostname}:${httpsPort}${url}`, 307),
      );
    },
    registerHttpsRoutes(app) {
      const hubUrl = ({ host }: FastifyRequest, path: string) => hosts.urlOf(path, host);
      serveStatefulCallback(app, service, hubName, hubUrl);
      serveNextLogin(app, service, hubName, hubUrl);
      servePairPage(app, service, hubName, options);
      const guard = serveSignIn(app, access, options);
      serveInstallerPages(app, guard);
      serveSignedInBrowsers(guard, options);
      serveSetupCode(guard, options);
    },
    registerIngressRoutes(app) {
      acceptIngressRequests(app, ingressUsers);
      serveInstallerPages(app, new AuthenticatedRoutes(app, ingressAuthentication(access), options));
    },
    sendNotFound(request, reply, status) {
      const context = pageContext(hubName, request);
      const { notFound: nothingHere, notFoundText: nothingHereText } = context.texts.landing;
      const link = { href: '/', text: context.texts.batch.openHubPage };
      return sendMessagePage(reply, status, context, {
        severity: 'bad',
        heading: nothingHere,
        text: nothingHereText,
        link,
      });
    },
    close() {
      live.close();
      issued.close();
      added.close();
    },
  };
}
