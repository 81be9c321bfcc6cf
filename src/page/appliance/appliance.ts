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

/** What the pages of appliances are made of. */
interface AppliancePagesOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Nobody waits longer for an answer, in ms. */
const REFRESH_TIMEOUT_MS = 8000;

/** The page of each appliance, and what can be done there. */
export function serveAppliances(
  guard: AuthenticatedRoutes,
  { administration, clock, timers }: AppliancePagesOptions,
): void {
  /** A form that does something at once. @param to where it leads then */
  function doing(
    below: string,
    act: (name: string, form: FormSubmission['form']) => Promise<unknown>,
    to: (name: string) => string = appliancePath,
  ): void {
    guard.form(`/appliances/:name/${below}`, async (sent: FormSubmission) => {
      const name = pathParameter(sent, 'name');
      try {
        await act(name, sent.form);
      } catch (error) {
        return sendFailure(sent, name, error);
      }
      return sent.reply.redirect(to(name), 303);
    });
  }

  function asking(below: string, confirm: (texts: Texts, appliance: ApplianceStatus) => Confirmation): void {
    guard.page(`/appliances/:name/${below}`, (asked) =>
      withAppliance(asked, administration, (appliance) => {
        const { context, session } = asked;
        if (below === 'remove' && appliance.declared) throw new Failure('appliance_declared', appliance.name);
        return sendInstallerPage(asked, 200, confirmationPage(confirm(context.texts, appliance), context, session));
      }),
    );
  }

  function show(asked: AuthenticatedRequest): Promise<FastifyReply> {
    return withAppliance(asked, administration, async (appliance, { conditions, notices }) => {
      const history = await administration.history(appliance.name);
      const shown = { appliance, conditions, notices, history, now: clock.now().wall };
      return sendInstallerPage(asked, 200, appliancePage(shown, asked.context, asked.session));
    });
  }

  guard.page('/appliances/:name', show);
  guard.page('/appliances/:name/', show);
  asking('unpair', unpairConfirmation);
  asking('remove', removalConfirmation);
  doing('unpair', (name) => administration.unpair(name));
  doing(
    'remove',
    (name) => administration.removeAppliance(name),
    () => '/',
  );
  doing('refresh', refresh);
  doing('approve', approve);

  /** Goes on where it takes longer: the page that follows shows what comes of it. */
  function refresh(name: string): Promise<void> {
    return withTimeout(administration.refresh(name), REFRESH_TIMEOUT_MS, timers);
  }

  /** Approves the one that was shown, if nobody has meanwhile: another may have come by its name since. */
  async function approve(name: string, form: FormSubmission['form']): Promise<void> {
    const { appliances } = await administration.status();
    const shown = appliances.find((one) => one.name === name && one.clientId === form.get('client_id'));
    if (shown === undefined) throw new Failure('appliance_unknown', name);
    if (shown.waitingForApproval === undefined) return;
    await administration.approveAppliance(name, shown.waitingForApproval.comparisonCode);
  }
}

/** Seconds after which the page is looked at again where scripts are off and somebody is about to log in. */
const WAITING_RELOAD_SECONDS = 10;

/** What there is to show of an appliance. */
interface ApplianceView {
  readonly appliance: ApplianceStatus;
  /** Of all that have some. */
  readonly conditions: StatusReport['conditions'];
  readonly notices: StatusReport['notices'];
  readonly history: readonly HistoryEntry[];
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/** The page of one appliance: how it stands, what can be done with it, and what has happened to it. */
export function appliancePage(shown: ApplianceView, { texts }: PageContext, session: PageSession): InstallerPage {
  const { appliance, conditions, notices, history, now } = shown;
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
  const link = (below: string, text: string, style = '') =>
    html`<a class="button ${style}" id="${below}" href="${appliancePath(name, below)}">${text}</a>`;
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
