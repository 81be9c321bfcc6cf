import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { StatusReport } from '../../core/administration.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import type { Named } from '../../core/name.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { withTimeout } from '../../system/clock.ts';
import { findConnection, type PageServices } from '../administration-view.ts';
import { renderEndingLink, renderHealth, renderLoginDetails } from '../appliance/appliance-fragments.ts';
import { type Confirmation, confirmationPage } from '../appliance/confirmations.ts';
import { renderOtherPermissions } from '../appliance/connection-choice.ts';
import { renderHistory } from '../appliance/history.ts';
import { joinTitles, pagePathOf, titlesOf } from '../connection-names.ts';
import { connectionHealth } from '../health.ts';
import { pathParameter } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageContext } from '../page-context.ts';
import { addAppliancePath, appliancePath, connectionPath } from '../paths.ts';
import { renderRenaming, serveRenaming } from '../rename.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { connectionUsers, MAX_SHOWN_USERS, renderConnectAction, renderUserList } from './connection-fragments.ts';

/** How long a browser waits for a refresh, in ms. */
const REFRESH_TIMEOUT_MS = 8000;

/** Serves the page of each connection, and its forms. An appliance's own connection is on the appliance's page. */
export function serveConnections(guard: AuthenticatedRoutes, { administration, clock, timers }: PageServices): void {
  async function sendConnectionPage(req: AuthenticatedRequest): Promise<FastifyReply> {
    const { connection, status } = await findConnection(req, administration);
    const { name, own } = connection;
    if (own) return req.reply.redirect(appliancePath(name), 303);
    const history = await administration.history(name);
    const view = { connection, status, portals: administration.portals(), history, now: clock.now().wall };
    return sendInstallerPage(req, 200, connectionPage(view, req.context, req.session));
  }

  function sendRemoval(req: AuthenticatedRequest, status: number, connection: ConnectionStatus) {
    const confirmation = removalConfirmation(req.context.texts, connection);
    return sendInstallerPage(req, status, confirmationPage(confirmation, req.context, req.session));
  }

  guard.page('/connections/:name', sendConnectionPage);
  guard.page('/connections/:name/', sendConnectionPage);
  // A refresh that takes longer continues; the page then shows its result.
  guard.form('/connections/:name/refresh', async (submission) => {
    const name = pathParameter(submission, 'name');
    await withTimeout(submission.administration.refresh(name), REFRESH_TIMEOUT_MS, timers);
    return submission.reply.redirect(connectionPath(name), 303);
  });
  guard.page('/connections/:name/unpair', async (req) => {
    const { connection } = await findConnection(req, administration);
    const confirmation = disconnectConfirmation(req.context.texts, connection);
    return sendInstallerPage(req, 200, confirmationPage(confirmation, req.context, req.session));
  });
  guard.form('/connections/:name/unpair', async (submission) => {
    const name = pathParameter(submission, 'name');
    await submission.administration.unpair(name);
    return submission.reply.redirect(connectionPath(name), 303);
  });
  guard.page('/connections/:name/remove', async (req) => {
    const { connection } = await findConnection(req, administration);
    if (connection.declared) throw new Failure('connection_declared', connection.name);
    return sendRemoval(req, 200, connection);
  });
  guard.form('/connections/:name/remove', async (submission) => {
    const name = pathParameter(submission, 'name');
    const { form, reply } = submission;
    try {
      await submission.administration.removeConnection(name, form.get('even_if_used') === 'yes');
      return reply.redirect('/', 303);
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'connection_in_use')) throw error;
      // It was unused when the page asked.
      return sendRemoval(submission, 409, (await findConnection(submission, administration)).connection);
    }
  });
  serveRenaming(guard, '/connections/:name/rename', async (req) => {
    const { title } = (await findConnection(req, administration)).connection;
    const name = pathParameter(req, 'name');
    return { title, path: connectionPath(name), rename: (to) => req.administration.renameConnection(name, to) };
  });
}

/** Asks whether to disconnect a connection, which removes its grant. */
function disconnectConfirmation(texts: Texts, { name, title, users, own }: ConnectionStatus): Confirmation {
  const { connection, appliance } = texts;
  const ofShared =
    users.length === 0 ? connection.disconnectUnused : connection.disconnectText(joinTitles(users, texts));
  return {
    heading: own ? appliance.disconnectHeading(title) : connection.disconnectHeading(title),
    text: own ? appliance.disconnectText : ofShared,
    action: connectionPath(name, 'unpair'),
    confirmLabel: appliance.disconnect,
    cancelHref: pagePathOf({ connection: name, ...(own && { own }) }),
  };
}

/**
 * Asks whether to remove a connection. Only the form that names its appliances permits to remove a connection in use.
 */
function removalConfirmation(texts: Texts, { name, title, users }: ConnectionStatus): Confirmation {
  const { connection, appliance } = texts;
  const isUsed = users.length > 0;
  return {
    heading: connection.removeHeading(title),
    text: isUsed ? connection.removeUsed(joinTitles(users, texts)) : connection.removeUnused,
    action: connectionPath(name, 'remove'),
    confirmLabel: appliance.remove,
    cancelHref: connectionPath(name),
    fieldsHtml: isUsed ? html`<input type="hidden" name="even_if_used" value="yes">` : '',
  };
}

/** What the page of a connection shows. */
interface ConnectionView {
  readonly connection: ConnectionStatus;
  readonly status: Pick<StatusReport, 'appliances' | 'conditions' | 'notices'>;
  readonly portals: readonly Named[];
  readonly history: readonly HistoryEntry[];
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/** The page of one connection: its state, its appliances, its actions and its history. */
export function connectionPage(
  { connection, status, portals, history, now }: ConnectionView,
  { texts }: PageContext,
  session: PageSession,
): InstallerPage {
  const { name, state } = connection;
  const health = connectionHealth(status, texts)(connection);
  const title = texts.connection.title(connection.title);
  return {
    title,
    now,
    live: true,
    isWaiting: state === 'pairing',
    body: html`!${backLink('/', texts.installer.overview)}
<div class="two"><div class="stack head">
<h1>${title}</h1>
<section class="card ${health.needsAttention ? 'bad' : ''}" aria-label="${texts.appliance.state}">!${renderHealth(texts, health, true)}
!${renderConnectAction(texts, session, connection, health)}
!${renderLoginDetails(texts, connection, titlesOf(portals), now)}</section>
<section class="stack" aria-labelledby="users"><h2 id="users">${texts.connection.usedBy}</h2>
!${renderUserList(texts, connection, connectionUsers(status), MAX_SHOWN_USERS, now)}
<div class="actions"><a class="button" id="add-user" href="${addAppliancePath(name)}">${texts.connection.addAppliance}</a></div></section>
</div>
!${renderHistory(texts, history, now)}
!${renderManagement(texts, session, connection)}</div>`,
  };
}

function renderManagement(
  all: Texts,
  session: PageSession,
  { name, title, state, declared, authorizeUrl, withoutRefreshToken, users }: ConnectionStatus,
): string {
  const { appliance: texts, connection: own, overview } = all;
  const hasGrant = state === 'active' || state === 'retrying' || state === 'needs_pairing';
  const button = (action: string, text: string) =>
    csrfForm(session, connectionPath(name, action), html`<button id="${action}">${text}</button>`);
  const endingLink = (action: string, text: string, meaning: string) =>
    renderEndingLink(action, connectionPath(name, action), text, meaning);
  const daily: string[] = [];
  if (hasGrant && withoutRefreshToken !== true) daily.push(button('refresh', texts.refreshNow));
  if ((state === 'active' || state === 'retrying') && authorizeUrl === undefined)
    daily.push(button('pair', overview.connectAgain));
  const ending: string[] = [];
  if (hasGrant || state === 'pairing') ending.push(endingLink('unpair', texts.disconnect, own.disconnectMeaning));
  if (!declared)
    ending.push(endingLink('remove', texts.remove, users.length > 0 ? own.removeMeaning : own.removeUnusedMeaning));
  return html`<section class="stack manage" aria-labelledby="manage"><h2 id="manage">${texts.manage}</h2>
!${declared ? html`<p class="quiet">${own.declared}</p>` : ''}
!${daily.length === 0 ? '' : html`<div class="actions">!${daily}</div>`}
!${declared ? '' : renderRenaming(all, session, connectionPath(name), title, own.renameMeaning)}
!${declared ? '' : renderOtherPermissions(all, all.connectionChoice.otherPermissions)}
!${ending.length === 0 ? '' : html`<div class="actions ending">!${ending}</div>`}</section>`;
}
