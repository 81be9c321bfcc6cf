import type { FastifyInstance } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Clock } from '../core/clock.ts';
import type { Guard } from './guard.ts';
import { sendInstallerPage } from './installer-page.ts';
import type { Live } from './live.ts';
import { overviewPage } from './overview.ts';
import { serveScripts } from './scripts.ts';

/** What the installer's page is made of. */
export interface InstallerOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly live: Live;
}

/** The installer's page: the hub and its appliances, for somebody who is signed in. */
export function serveInstaller(
  app: FastifyInstance,
  guard: Guard,
  { administration, clock, live }: InstallerOptions,
): void {
  serveScripts(app);
  live.serve(guard);
  guard.page('/', async (asked) => {
    const status = await administration.status();
    const { wall } = clock.now();
    return sendInstallerPage(
      asked,
      200,
      overviewPage(status, asked.frame, asked.session, administration.portals(), wall),
    );
  });
}
