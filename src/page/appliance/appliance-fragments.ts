import { html } from 'ghtml';
import type { ApplianceStatus, PendingApproval } from '../../core/administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { icon, timeElement } from '../elements.ts';
import { csrfForm } from '../installer-page.ts';
import type { ApplianceHealth } from '../overview/health.ts';
import { appliancePath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/**
 * Its state in words and an icon, and what to do.
 * @param told whether a screen reader says the state when it changes; of many on one page none is
 * @returns HTML
 */
export function renderHealth({ states }: Texts, { kind, severity, advice }: ApplianceHealth, told: boolean): string {
  return html`<p class="state ${severity}"!${told ? ' role="status"' : ''}>!${icon(severity)}<span>${states.kinds[kind]}</span></p>
!${advice.map((text) => html`<p>${text}</p>`)}`;
}

/** What is known of it, by name and value. @param now the hub's wall clock, in ms @returns HTML */
export function renderApplianceDetails(
  texts: Texts,
  appliance: ApplianceStatus,
  several: boolean,
  now: number,
): string {
  const { overview, states } = texts;
  const { scope, lastRefresh, refreshIn, expiresIn, portal, account, waitingForApproval, problem, pairingFailed } =
    appliance;
  const rows: [name: string, value: string][] = [
    [overview.scope, scope === null ? html`${overview.scopeByPortal}` : html`${scope}`],
  ];
  if (several) rows.push([overview.portal, html`${portal}`]);
  if (account !== null) rows.push([overview.account, html`${account}`]);
  if (waitingForApproval !== undefined) {
    const { since, softwareId } = waitingForApproval;
    if (softwareId !== null) rows.push([states.softwareId, html`${softwareId}`]);
    rows.push([overview.registered, timeElement(texts, Date.parse(since), now)]);
  }
  if (lastRefresh !== null) rows.push([overview.lastRefresh, timeElement(texts, Date.parse(lastRefresh), now)]);
  if (refreshIn !== null) rows.push([overview.nextRefresh, timeElement(texts, now + refreshIn * 1000, now)]);
  if (pairingFailed !== undefined)
    rows.push([states.lastPairing, timeElement(texts, Date.parse(pairingFailed.at), now)]);
  if (problem !== null) rows.push([states.problemSince, timeElement(texts, Date.parse(problem.since), now)]);
  if (problem !== null && expiresIn !== null && expiresIn > 0) {
    rows.push([states.tokenExpires, timeElement(texts, now + expiresIn * 1000, now)]);
  }
  return renderDetailList(rows);
}

/** @param rows names as text, values as HTML */
function renderDetailList(rows: readonly (readonly [name: string, value: string])[]): string {
  return html`<dl class="facts">!${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>!${value}</dd></div>`)}</dl>`;
}

/** By what a person tells one that waits for approval from another: seen before the button that approves it. */
function renderComparison({ states }: Texts, { comparisonCode, address }: PendingApproval): string {
  const code = [states.comparisonCode, html`<code class="compare">${comparisonCode}</code>`] as const;
  return renderDetailList(address === null ? [code] : [code, [states.registrantAddress, html`${address}`]]);
}

/** What can be done next about how it stands; nothing where all is well. @returns HTML */
export function renderNextAction(
  texts: Texts,
  session: PageSession,
  { name, clientId, authorizeUrl, waitingForApproval }: ApplianceStatus,
  health: ApplianceHealth,
): string {
  const { overview } = texts;
  const pair = (text: string) =>
    csrfForm(session, appliancePath(name, 'pair'), html`<button class="primary" id="pair-${name}">${text}</button>`);
  if (waitingForApproval !== undefined) {
    const approve = html`<input type="hidden" name="client_id" value="${clientId}">
<button class="primary" id="approve-${name}">${overview.approve}</button>`;
    return html`!${renderComparison(texts, waitingForApproval)}
<div class="actions">!${csrfForm(session, appliancePath(name, 'approve'), approve)}
<a class="button danger" id="refuse-${name}" href="${appliancePath(name, 'remove')}">${overview.reject}</a></div>`;
  }
  if (authorizeUrl !== undefined) return pair(overview.showLink);
  if (health.kind === 'not_connected') return pair(overview.connect);
  return health.kind === 'log_in_again' ? pair(overview.connectAgain) : '';
}
