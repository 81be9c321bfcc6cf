import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration, ApplianceStatus, StatusReport } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { withTimeout } from '../../system/clock.ts';
import { sendFailure, withAppliance } from '../failures.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import { applianceHealth } from '../overview/health.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import {
  type AuthenticatedRequest,
  type AuthenticatedRoutes,
  type FormSubmission,
  pathParameter,
} from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { renderApplianceDetails, renderHealth, renderNextAction } from './appliance-fragments.ts';
import { type Confirmation, confirmationPage, removalConfirmation, unpairConfirmation } from './confirmations.ts';
import { renderHistory } from './history.ts';

/** What the pages of appliances need. */
interface AppliancePagesOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** How long a browser waits for a refresh, in ms. */
const REFRESH_TIMEOUT_MS = 8000;

/** Serves the page of each appliance, and its forms. */
export function serveAppliances(
  guard: AuthenticatedRoutes,
  { administration, clock, timers }: AppliancePagesOptions,
): void {
  /** A form that acts without a confirmation. @param redirectPath the page after the action */
  function serveAction(
    action: string,
    act: (name: string, form: FormSubmission['form']) => Promise<unknown>,
    redirectPath: (name: string) => string = appliancePath,
  ): void {
    guard.form(`/appliances/:name/${action}`, async (submission: FormSubmission) => {
      const name = pathParameter(submission, 'name');
      try {
        await act(name, submission.form);
      } catch (error) {
        return sendFailure(submission, name, error);
      }
      return submission.reply.redirect(redirectPath(name), 303);
    });
  }

  function serveConfirmation(
    action: string,
    confirm: (texts: Texts, appliance: ApplianceStatus) => Confirmation,
  ): void {
    guard.page(`/appliances/:name/${action}`, (req) =>
      withAppliance(req, administration, (appliance) => {
        const { context, session } = req;
        if (action === 'remove' && appliance.declared) throw new Failure('appliance_declared', appliance.name);
        return sendInstallerPage(req, 200, confirmationPage(confirm(context.texts, appliance), context, session));
      }),
    );
  }

  function sendAppliancePage(req: AuthenticatedRequest): Promise<FastifyReply> {
    return withAppliance(req, administration, async (appliance, { conditions, notices }) => {
      const history = await administration.history(appliance.name);
      const view = { appliance, conditions, notices, history, now: clock.now().wall };
      return sendInstallerPage(req, 200, appliancePage(view, req.context, req.session));
    });
  }

  guard.page('/appliances/:name', sendAppliancePage);
  guard.page('/appliances/:name/', sendAppliancePage);
  serveConfirmation('unpair', unpairConfirmation);
  serveConfirmation('remove', removalConfirmation);
  serveAction('unpair', (name) => administration.unpair(name));
  serveAction(
    'remove',
    (name) => administration.removeAppliance(name),
    () => '/',
  );
  serveAction('refresh', refresh);
  serveAction('approve', approve);

  /** A refresh that takes longer continues; the page then shows its result. */
  function refresh(name: string): Promise<void> {
    return withTimeout(administration.refresh(name), REFRESH_TIMEOUT_MS, timers);
  }

  /** Approves the appliance that the page showed, found by its client ID: another one may have its name by now. */
  async function approve(name: string, form: FormSubmission['form']): Promise<void> {
    const { appliances } = await administration.status();
    const appliance = appliances.find((one) => one.name === name && one.clientId === form.get('client_id'));
    if (appliance === undefined) throw new Failure('appliance_unknown', name);
    if (appliance.waitingForApproval === undefined) return;
    await administration.approveAppliance(name, appliance.waitingForApproval.comparisonCode);
  }
}

/** While a login is awaited, a browser without scripts reloads the page after this many seconds. */
const WAITING_RELOAD_SECONDS = 10;

/** What the page of an appliance shows. */
interface ApplianceView {
  readonly appliance: ApplianceStatus;
  /** The conditions of the hub and of all appliances. */
  readonly conditions: StatusReport['conditions'];
  readonly notices: StatusReport['notices'];
  readonly history: readonly HistoryEntry[];
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/** The page of one appliance: its state, its actions and its history. */
export function appliancePage(view: ApplianceView, { texts }: PageContext, session: PageSession): InstallerPage {
  const { appliance, conditions, notices, history, now } = view;
  const { name, state } = appliance;
  const isOwn = (one: { readonly appliance: string | null }) => one.appliance === name;
  const health = applianceHealth(appliance, conditions.filter(isOwn), notices.filter(isOwn), texts);
  return {
    title: name,
    now,
    live: true,
    ...(state === 'pairing' && { reloadAfter: WAITING_RELOAD_SECONDS }),
    body: html`!${backLink('/', texts.installer.overview)}
<div class="two"><div class="stack head">
<h1>${name}</h1>
<section class="card ${health.needsAttention ? 'bad' : ''}" aria-label="${texts.appliance.state}">!${renderHealth(texts, health, true)}
!${renderNextAction(texts, session, appliance, health)}
!${renderApplianceDetails(texts, appliance, true, now)}</section>
</div>
!${renderHistory(texts, history, now)}
!${renderManagement(texts, session, appliance)}</div>`,
  };
}

function renderManagement(
  { appliance: texts, overview }: Texts,
  session: PageSession,
  appliance: ApplianceStatus,
): string {
  const { name, state, clientId, declared, waitingForApproval, authorizeUrl, credentialsDamaged } = appliance;
  const hasGrant = state === 'active' || state === 'retrying' || state === 'needs_pairing';
  const isWaiting = waitingForApproval !== undefined;
  const buttons: string[] = [];
  if (hasGrant)
    buttons.push(
      csrfForm(session, appliancePath(name, 'refresh'), html`<button id="refresh">${texts.refreshNow}</button>`),
    );
  if ((state === 'active' || state === 'retrying') && authorizeUrl === undefined) {
    buttons.push(
      csrfForm(session, appliancePath(name, 'pair'), html`<button id="pair">${overview.connectAgain}</button>`),
    );
  }
  const link = (action: string, text: string, style = '') =>
    html`<a class="button ${style}" id="${action}" href="${appliancePath(name, action)}">${text}</a>`;
  if (!declared && !isWaiting && !credentialsDamaged) buttons.push(link('rotate-secret', texts.newSecret));
  if (!isWaiting) buttons.push(link('label', texts.doorLabel));
  if (hasGrant || state === 'pairing') buttons.push(link('unpair', texts.disconnect, 'danger'));
  if (!declared && !isWaiting) buttons.push(link('remove', texts.remove, 'danger'));
  const id = html`<dl class="facts"><div><dt>${texts.clientId}</dt><dd><code>${clientId}</code></dd></div></dl>`;
  if (isWaiting) return id;
  return html`<section class="stack manage" aria-labelledby="manage"><h2 id="manage">${texts.manage}</h2>
!${declared ? html`<p class="quiet">${texts.declared}</p>` : ''}
!${buttons.length === 0 ? '' : html`<div class="actions">!${buttons}</div>`}
!${id}</section>`;
}
