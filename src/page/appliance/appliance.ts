import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration, ApplianceStatus, HouseStatus } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { withTimeout } from '../../system/clock.ts';
import { sendFailure, withAppliance } from '../failures.ts';
import { backTo, type InstallerPage, sameOriginForm, sendInstallerPage } from '../installer-page.ts';
import { applianceHealth } from '../overview/health.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import { type Guard, parameter, type SentForm, type SignedIn } from '../sign-in/guard.ts';
import type { Texts } from '../texts/en.ts';
import { facts, healthParts, nextAction } from './appliance-parts.ts';
import { type Confirmation, confirmationPage, confirmRemoval, confirmUnpair } from './confirmations.ts';
import { historyParts } from './history.ts';

/** What the pages of appliances are made of. */
interface ApplianceOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Nobody waits longer for an answer, in ms. */
const MAX_WAIT = 8000;

/** The page of each appliance, and what can be done there. */
export function serveAppliances(guard: Guard, { administration, clock, timers }: ApplianceOptions): void {
  /** A form that does something at once. @param to where it leads then */
  function doing(
    below: string,
    act: (name: string, form: SentForm['form']) => Promise<unknown>,
    to: (name: string) => string = appliancePath,
  ): void {
    guard.form(`/appliances/:name/${below}`, async (sent: SentForm) => {
      const name = parameter(sent, 'name');
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

  function show(asked: SignedIn): Promise<FastifyReply> {
    return withAppliance(asked, administration, async (appliance, { conditions, notices }) => {
      const history = await administration.history(appliance.name);
      const shown = { appliance, conditions, notices, history, now: clock.now().wall };
      return sendInstallerPage(asked, 200, appliancePage(shown, asked.context, asked.session));
    });
  }

  guard.page('/appliances/:name', show);
  guard.page('/appliances/:name/', show);
  asking('unpair', confirmUnpair);
  asking('remove', confirmRemoval);
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
    return withTimeout(administration.refresh(name), MAX_WAIT, timers);
  }

  /** Approves the one that was shown, if nobody has meanwhile: another may have come by its name since. */
  async function approve(name: string, form: SentForm['form']): Promise<void> {
    const { appliances } = await administration.status();
    const shown = appliances.find((one) => one.name === name && one.clientId === form.get('client_id'));
    if (shown === undefined) throw new Failure('appliance_unknown', name);
    if (shown.waitingForApproval === undefined) return;
    await administration.approveAppliance(name, shown.waitingForApproval.comparisonCode);
  }
}

/** Seconds after which the page is looked at again where scripts are off and somebody is about to log in. */
const RELOAD_WHILE_WAITING = 10;

/** What there is to show of an appliance. */
interface ShownAppliance {
  readonly appliance: ApplianceStatus;
  /** Of all that have some. */
  readonly conditions: HouseStatus['conditions'];
  readonly notices: HouseStatus['notices'];
  readonly history: readonly HistoryEntry[];
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/** The page of one appliance: how it stands, what can be done with it, and what has happened to it. */
export function appliancePage(shown: ShownAppliance, { texts }: PageContext, session: PageSession): InstallerPage {
  const { appliance, conditions, notices, history, now } = shown;
  const { name, state } = appliance;
  const isOwn = (one: { readonly appliance: string | null }) => one.appliance === name;
  const health = applianceHealth(appliance, conditions.filter(isOwn), notices.filter(isOwn), texts);
  return {
    title: name,
    now,
    live: true,
    ...(state === 'pairing' && { reloadAfter: RELOAD_WHILE_WAITING }),
    body: html`!${backTo('/', texts.installer.overview)}
<div class="two"><div class="stack head">
<h1>${name}</h1>
<section class="card ${health.needsPerson ? 'bad' : ''}" aria-label="${texts.appliance.state}">!${healthParts(texts, health, true)}
!${nextAction(texts, session, appliance, health)}
!${facts(texts, appliance, true, now)}</section>
</div>
!${historyParts(texts, history, now)}
!${manage(texts, session, appliance)}</div>`,
  };
}

function manage({ appliance: texts, overview }: Texts, session: PageSession, appliance: ApplianceStatus): string {
  const { name, state, clientId, declared, waitingForApproval, authorizeUrl, credentialsDamaged } = appliance;
  const hasGrant = state === 'active' || state === 'retrying' || state === 'needs_pairing';
  const isWaiting = waitingForApproval !== undefined;
  const buttons: string[] = [];
  if (hasGrant)
    buttons.push(
      sameOriginForm(session, appliancePath(name, 'refresh'), html`<button id="refresh">${texts.refreshNow}</button>`),
    );
  if ((state === 'active' || state === 'retrying') && authorizeUrl === undefined) {
    buttons.push(
      sameOriginForm(session, appliancePath(name, 'pair'), html`<button id="pair">${overview.connectAgain}</button>`),
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
