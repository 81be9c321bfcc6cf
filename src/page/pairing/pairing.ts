import type { FastifyReply } from 'fastify';
import type { Administration } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import type { LanService } from '../../core/lan-service.ts';
import type { PairingAdministration, PairingView } from '../../core/pairings/pairing-administration.ts';
import { answered } from '../failures.ts';
import { keepForCallback, SENT_COOKIE } from '../http.ts';
import { sendInstallerPage } from '../installer-page.ts';
import { appliancePath, pairingPath, roundPath } from '../paths.ts';
import { type Guard, parameter, type SignedIn } from '../sign-in/guard.ts';
import { serveLabels } from './label.ts';
import { pairingPage } from './pairing-page.ts';
import { roundPage } from './round-page.ts';

/** What pairing from the page works with. */
export interface PairingPagesOptions {
  readonly administration: PairingAdministration & Pick<Administration, 'followPairing'>;
  readonly service: Pick<LanService, 'sentMark'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Connecting appliances from the installer's page: one by one, all in a round, and by a printed label. */
export function servePairing(guard: Guard, { administration, service, clock, timers }: PairingPagesOptions): void {
  /** Whoever looks at the link may follow it, and come back from the portal. */
  function keepMark({ reply }: SignedIn, { id, report }: PairingView): void {
    if (report.event === 'waiting') keepForCallback(reply, SENT_COOKIE, service.sentMark(id));
  }

  guard.form('/appliances/:name/pair', (sent) =>
    answered(sent, async () => to(sent, pairingPath(await administration.joinPairing(parameter(sent, 'name'))))),
  );
  guard.page('/pairings/:id', (asked) =>
    answered(asked, async () => {
      await waitForLink(administration, timers, parameter(asked, 'id'));
      const view = administration.pairing(parameter(asked, 'id'));
      keepMark(asked, view);
      return sendInstallerPage(asked, 200, pairingPage(asked, view, clock.now().wall));
    }),
  );
  guard.form('/pairings/:id/fresh', (sent) =>
    answered(sent, async () => {
      const { round } = administration.pairing(parameter(sent, 'id'));
      const fresh = await administration.retryPairing(parameter(sent, 'id'));
      return to(sent, round === null ? pairingPath(fresh) : roundPath(round.id));
    }),
  );
  guard.form('/pairings/:id/confirm', (sent) =>
    answered(sent, async () => {
      const id = parameter(sent, 'id');
      administration.confirmLogin(id, sent.form.get('login') ?? '');
      const { round } = administration.pairing(id);
      return to(sent, round === null ? pairingPath(id) : roundPath(round.id));
    }),
  );
  guard.form('/pairings/:id/cancel', (sent) =>
    answered(sent, async () => {
      const id = parameter(sent, 'id');
      const { appliance, round } = administration.pairing(id);
      await administration.cancelPairing(id);
      return to(sent, round === null ? appliancePath(appliance) : roundPath(round.id));
    }),
  );

  guard.form('/pair-all', (sent) =>
    answered(sent, async () => to(sent, roundPath((await administration.pairAll()).id))),
  );
  guard.page('/rounds/:id', (asked) =>
    answered(asked, async () => {
      const begun = administration.round(parameter(asked, 'id')).current;
      if (begun !== null) await waitForLink(administration, timers, begun.pairing);
      const round = administration.round(parameter(asked, 'id'));
      const current = round.current === null ? null : administration.pairing(round.current.pairing);
      if (current !== null) keepMark(asked, current);
      return sendInstallerPage(asked, 200, roundPage(asked, round, current, clock.now().wall));
    }),
  );
  guard.form('/rounds/:id/next', (sent) =>
    answered(sent, async () => {
      const id = parameter(sent, 'id');
      const { current } = administration.round(id);
      // Another one may be under way by now: that one is nobody's to skip from an older page.
      if (current !== null && current.pairing === sent.form.get('skip')) {
        await administration.cancelPairing(current.pairing);
      }
      await administration.nextPairing(id);
      return to(sent, roundPath(id));
    }),
  );

  serveLabels(guard, administration);
}

function to({ reply }: SignedIn, path: string): FastifyReply {
  return reply.header('cache-control', 'no-store').redirect(path, 303);
}

/** How long a page waits for a link, in ms: most portals give one within this, and nobody has to look at the page again for it. */
const LINK_TIMEOUT = 2000;

/** Resolves when a pairing has a link, or something is in its way, but soon in any case. @throws Failure `pairing_unknown` */
async function waitForLink(
  administration: Pick<Administration, 'followPairing'>,
  timers: Timers,
  pairing: string,
): Promise<void> {
  const timeout = new AbortController();
  const disarm = timers.after(LINK_TIMEOUT, () => timeout.abort());
  try {
    for await (const report of administration.followPairing(pairing, timeout.signal)) {
      if (report.event !== 'connecting' || report.problem !== null) return;
    }
  } finally {
    disarm();
  }
}
