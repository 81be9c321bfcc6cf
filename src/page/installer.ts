import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Random } from '../core/random.ts';
import type { SetupAccess } from '../core/setup-access.ts';
import { serveAdding } from './adding/adding.ts';
import { serveCredentials } from './adding/credentials.ts';
import type { ShownCredentials } from './adding/shown-credentials.ts';
import { serveAppliances } from './appliance/appliance.ts';
import { serveBrowsers } from './browsers/browsers.ts';
import { sendInstallerPage } from './installer-page.ts';
import type { Live } from './live/live.ts';
import { overviewPage } from './overview/overview.ts';
import { servePairing } from './pairing/pairing.ts';
import { serveScripts } from './scripts.ts';
import type { Guard } from './sign-in/guard.ts';

/** What the installer's page is made of. */
export interface InstallerOptions {
  readonly administration: Administration;
  readonly access: SetupAccess;
  readonly service: Pick<LanService, 'sentMark'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly live: Live;
  readonly shown: ShownCredentials;
}

/** How long the door is open for appliances that introduce themselves, in seconds. */
const REGISTRATION = 600;

/** The installer's page: the hub and its appliances, for somebody who is signed in. */
export function serveInstaller(app: FastifyInstance, guard: Guard, options: InstallerOptions): void {
  const { administration, clock, live } = options;
  serveScripts(app);
  live.serve(guard);
  serveAdding(guard, options);
  serveCredentials(guard, options);
  serveAppliances(guard, options);
  servePairing(guard, options);
  serveBrowsers(guard, options);
  guard.page('/', async (asked) => {
    const status = await administration.status();
    const { wall } = clock.now();
    return sendInstallerPage(
      asked,
      200,
      overviewPage(status, asked.frame, asked.session, administration.portals(), wall, pageOf(asked.request)),
    );
  });
  for (const [path, seconds] of [
    ['/registration/open', REGISTRATION],
    ['/registration/close', 0],
  ] as const) {
    guard.form(path, async ({ reply }) => {
      await administration.openRegistration(seconds);
      return reply.redirect('/', 303);
    });
  }
}

/** Which page of the appliances is asked for; the first one where it is none. */
function pageOf({ query }: FastifyRequest): number {
  const page = typeof query === 'object' && query !== null && 'page' in query ? Number(query.page) : 1;
  return Number.isSafeInteger(page) && page > 0 ? page : 1;
}
