import type { Administration } from '../../core/administration.ts';
import type { Timers } from '../../core/clock.ts';
import type { PairedConnection } from '../../core/lan-service.ts';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { findAppliance, type PageServices } from '../administration-view.ts';
import { pagePathOf } from '../connection-names.ts';
import { BROWSER_TOKEN_COOKIE, pathParameter, setCallbackCookie } from '../http.ts';
import { redirectTo, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { pairingBatchPath, pairingPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import { pairingBatchPage } from './pairing-batch-page.ts';
import { pairingPage } from './pairing-page.ts';
import { pathAbove, servePasteAddress } from './paste-address.ts';
import { servePrintedLabels } from './printed-label.ts';

/** Serves pairing from the installer's page: one appliance, all in a batch, and by a printed label. */
export function servePairing(
  guard: AuthenticatedRoutes,
  { administration, service, hosts, clock, timers }: PageServices,
): void {
  /** Sets the cookie by which the callback recognises a browser that follows the login link, and records its way back. */
  function setBrowserBinding({ request, reply }: AuthenticatedRequest, { id, status }: PairingView): void {
    hosts.record(request);
    if (status.event === 'waiting') setCallbackCookie(reply, BROWSER_TOKEN_COOKIE, service.browserToken(id));
  }

  /** A pairing with what people call its portal, its connection and the appliances that use it. */
  async function named(view: PairingView): Promise<PairingView & PairedConnection> {
    const portals = administration.portals();
    const at = portals.find(({ name }) => view.portal === null || name === view.portal);
    // The bare name of the only portal says nothing.
    const portal = view.portal === null && at?.title === at?.name ? null : (at?.title ?? view.portal);
    return { ...view, portal, ...(await pairedConnection(view.connection)) };
  }

  /** A connection by its name, with the appliances that use it. */
  async function pairedConnection(connection: string): Promise<PairedConnection> {
    const { connections } = await administration.status();
    const found = connections.find(({ name }) => name === connection);
    const { title, users, own } = found ?? { title: connection, users: [] };
    return { connection, title, users, ...(own && { own }) };
  }

  guard.form('/appliances/:name/pair', async (submission) => {
    const { connection } = (await findAppliance(submission, administration)).appliance;
    return redirectTo(submission, pairingPath(await submission.administration.getOrStartPairing(connection)));
  });
  guard.form('/connections/:name/pair', async (submission) => {
    const id = await submission.administration.getOrStartPairing(pathParameter(submission, 'name'));
    return redirectTo(submission, pairingPath(id));
  });
  guard.page('/pairings/:id', async (req) => {
    await waitForLink(administration, timers, pathParameter(req, 'id'));
    const view = administration.getPairing(pathParameter(req, 'id'));
    setBrowserBinding(req, view);
    return sendInstallerPage(req, 200, pairingPage(req, await named(view), clock.now().wall));
  });
  guard.form('/pairings/:id/fresh', async (submission) => {
    const { batch } = administration.getPairing(pathParameter(submission, 'id'));
    const id = await submission.administration.retryPairing(pathParameter(submission, 'id'));
    return redirectTo(submission, pathAbove({ id, batch }));
  });
  guard.form('/pairings/:id/confirm', async (submission) => {
    const id = pathParameter(submission, 'id');
    submission.administration.confirmLogin(id, submission.form.get('login') ?? '');
    return redirectTo(submission, pathAbove(administration.getPairing(id)));
  });
  guard.form('/pairings/:id/cancel', async (submission) => {
    const id = pathParameter(submission, 'id');
    const { connection, batch } = administration.getPairing(id);
    await submission.administration.cancelPairing(id);
    if (batch !== null) return redirectTo(submission, pairingBatchPath(batch.id));
    return redirectTo(submission, pagePathOf(await pairedConnection(connection)));
  });

  guard.form('/pair-all', async (submission) => {
    const { id } = await submission.administration.pairAll();
    return redirectTo(submission, pairingBatchPath(id));
  });
  guard.page('/batches/:id', async (req) => {
    const id = pathParameter(req, 'id');
    const pending = administration.getBatch(id).current;
    if (pending !== null) await waitForLink(administration, timers, pending.pairing);
    const batch = administration.getBatch(id);
    const current = batch.current === null ? null : administration.getPairing(batch.current.pairing);
    if (current !== null) setBrowserBinding(req, current);
    const view = current && (await named(current));
    return sendInstallerPage(req, 200, pairingBatchPage(req, batch, view, clock.now().wall));
  });
  guard.form('/batches/:id/next', async (submission) => {
    const id = pathParameter(submission, 'id');
    const { current } = administration.getBatch(id);
    // An older page must not skip a pairing that has started since.
    if (current !== null && current.pairing === submission.form.get('skip')) {
      await submission.administration.cancelPairing(current.pairing);
    }
    await submission.administration.startNextPairing(id);
    return redirectTo(submission, pairingBatchPath(id));
  });

  servePasteAddress(guard, administration);
  servePrintedLabels(guard, administration);
}

/**
 * How long a page waits for a link, in ms: most portals send one in this time, so the page does not have to be loaded
 * again.
 */
const LINK_TIMEOUT_MS = 2000;

/**
 * Resolves when a pairing has a link or a problem, or after {@link LINK_TIMEOUT_MS}.
 * @throws Failure `pairing_unknown`
 */
async function waitForLink(
  administration: Pick<Administration, 'followPairing'>,
  timers: Timers,
  pairing: string,
): Promise<void> {
  const timeout = new AbortController();
  const disarm = timers.after(LINK_TIMEOUT_MS, () => timeout.abort());
  try {
    for await (const status of administration.followPairing(pairing, timeout.signal)) {
      if (status.event !== 'connecting' || status.problem !== null) return;
    }
  } finally {
    disarm();
  }
}
