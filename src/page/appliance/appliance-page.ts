import { html } from 'ghtml';
import type { ApplianceStatus, HouseStatus } from '../../core/administration.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { backTo, type InstallerPage, sameOriginForm } from '../installer-page.ts';
import { applianceHealth } from '../overview/health.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';
import { facts, healthParts, nextAction } from './appliance-parts.ts';
import { historyParts } from './history.ts';

/** Seconds after which the page is looked at again where scripts are off and somebody is about to log in. */
const RELOAD_WHILE_WAITING = 10;

/** What there is to show of an appliance. */
export interface ShownAppliance {
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
