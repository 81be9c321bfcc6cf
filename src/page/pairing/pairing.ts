import type { FastifyReply } from 'fastify';
import type { Administration } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import type { LanService } from '../../core/lan-service.ts';
import type { PairingAdministration, PairingView } from '../../core/pairings/pairing-administration.ts';
import { handlePairingFailures } from '../failures.ts';
import { BROWSER_TOKEN_COOKIE, setCallbackCookie } from '../http.ts';
import { sendInstallerPage } from '../installer-page.ts';
import { appliancePath, pairingBatchPath, pairingPath } from '../paths.ts';
import { type AuthenticatedRequest, type AuthenticatedRoutes, pathParameter } from '../sign-in/authenticated-routes.ts';
import { pairingBatchPage } from './pairing-batch-page.ts';
import { pairingPage } from './pairing-page.ts';
import { servePrintedLabels } from './printed-label.ts';

/** What pairing from the page works with. */
export interface PairingPagesOptions {
  readonly administration: PairingAdministration & Pick<Administration, 'followPairing'>;
  readonly service: Pick<LanService, 'browserBinding'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Connecting appliances from the installer's page: one by one, all in a round, and by a printed label. */
export function servePairing(
  guard: AuthenticatedRoutes,
  { administration, service, clock, timers }: PairingPagesOptions,
): void {
  /** Whoever looks at the link may follow it, and come back from the portal. */
  function keepMark({ reply }: AuthenticatedRequest, { id, status: report }: PairingView): void {
    if (report.event === 'waiting') setCallbackCookie(reply, BROWSER_TOKEN_COOKIE, service.browserBinding(id));
  }

  guard.form('/appliances/:name/pair', (sent) =>
    handlePairingFailures(sent, async () =>
      redirectTo(sent, pairingPath(await administration.getOrStartPairing(pathParameter(sent, 'name')))),
    ),
  );
  guard.page('/pairings/:id', (asked) =>
    handlePairingFailures(asked, async () => {
      await waitForLink(administration, timers, pathParameter(asked, 'id'));
      const view = administration.getPairing(pathParameter(asked, 'id'));
      keepMark(asked, view);
      return sendInstallerPage(asked, 200, pairingPage(asked, view, clock.now().wall));
    }),
  );
  guard.form('/pairings/:id/fresh', (sent) =>
    handlePairingFailures(sent, async () => {
      const { batch: round } = administration.getPairing(pathParameter(sent, 'id'));
      const fresh = await administration.retryPairing(pathParameter(sent, 'id'));
      return redirectTo(sent, round === null ? pairingPath(fresh) : pairingBatchPath(round.id));
    }),
  );
  guard.form('/pairings/:id/confirm', (sent) =>
    handlePairingFailures(sent, async () => {
      const id = pathParameter(sent, 'id');
      administration.confirmLogin(id, sent.form.get('login') ?? '');
      const { batch: round } = administration.getPairing(id);
      return redirectTo(sent, round === null ? pairingPath(id) : pairingBatchPath(round.id));
    }),
  );
  guard.form('/pairings/:id/cancel', (sent) =>
    handlePairingFailures(sent, async () => {
      const id = pathParameter(sent, 'id');
      const { appliance, batch: round } = administration.getPairing(id);
      await administration.cancelPairing(id);
      return redirectTo(sent, round === null ? appliancePath(appliance) : pairingBatchPath(round.id));
    }),
  );

  guard.form('/pair-all', (sent) =>
    handlePairingFailures(sent, async () => redirectTo(sent, pairingBatchPath((await administration.pairAll()).id))),
  );
  guard.page('/rounds/:id', (asked) =>
    handlePairingFailures(asked, async () => {
      const begun = administration.getBatch(pathParameter(asked, 'id')).current;
      if (begun !== null) await waitForLink(administration, timers, begun.pairing);
      const round = administration.getBatch(pathParameter(asked, 'id'));
      const current = round.current === null ? null : administration.getPairing(round.current.pairing);
      if (current !== null) keepMark(asked, current);
      return sendInstallerPage(asked, 200, pairingBatchPage(asked, round, current, clock.now().wall));
    }),
  );
  guard.form('/rounds/:id/next', (sent) =>
    handlePairingFailures(sent, async () => {
      const id = pathParameter(sent, 'id');
      const { current } = administration.getBatch(id);
      // Another one may be under way by now: that one is nobody's to skip from an older page.
      if (current !== null && current.pairing === sent.form.get('skip')) {
        await administration.cancelPairing(current.pairing);
      }
      await administration.startNextPairing(id);
      return redirectTo(sent, pairingBatchPath(id));
    }),
  );

  servePrintedLabels(guard, administration);
}

function redirectTo({ reply }: AuthenticatedRequest, path: string): FastifyReply {
  return reply.header('cache-control', 'no-store').redirect(path, 303);
}

/** How long a page waits for a link, in ms: most portals give one within this, and nobody has to look at the page again for it. */
const LINK_TIMEOUT_MS = 2000;

/** Resolves when a pairing has a link, or something is in its way, but soon in any case. @throws Failure `pairing_unknown` */
async function waitForLink(
  administration: Pick<Administration, 'followPairing'>,
  timers: Timers,
  pairing: string,
): Promise<void> {
  const timeout = new AbortController();
  const disarm = timers.after(LINK_TIMEOUT_MS, () => timeout.abort());
  try {
    for await (const report of administration.followPairing(pairing, timeout.signal)) {
      if (report.event !== 'connecting' || report.problem !== null) return;
    }
  } finally {
    disarm();
  }
}
