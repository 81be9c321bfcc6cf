import { html } from 'ghtml';
import type { ApplianceStatus, PendingApproval } from '../../core/administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { icon, timeElement } from '../elements.ts';
import { csrfForm } from '../installer-page.ts';
import type { ApplianceHealth } from '../overview/health.ts';
import { appliancePath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/**
 * An appliance's state as text and icon, and what to do.
 * @param isAnnounced whether screen readers announce changes of the state; false on pages with many appliances
 * @returns HTML
 */
export function renderHealth(
  { states }: Texts,
  { kind, severity, advice }: ApplianceHealth,
  isAnnounced: boolean,
): string {
  return html`<p class="state ${severity}"!${isAnnounced ? ' role="status"' : ''}>!${icon(severity)}<span>${states.kinds[kind]}</span></p>
!${advice.map((text) => html`<p>${text}</p>`)}`;
}

/**
 * An appliance's details, as pairs of name and value.
 * @param showsPortal whether to name its portal
 * @param now the hub's wall clock in ms since 1970
 * @returns HTML
 */
export function renderApplianceDetails(
  texts: Texts,
  appliance: ApplianceStatus,
  showsPortal: boolean,
  now: number,
): string {
  const { overview, states } = texts;
  const { scope, lastRefresh, refreshIn, expiresIn, portal, account, waitingForApproval, problem, pairingFailed } =
    appliance;
  const rows: [name: string, value: string][] = [
    [overview.scope, scope === null ? html`${overview.scopeByPortal}` : html`${scope}`],
  ];
  if (showsPortal) rows.push([overview.portal, html`${portal}`]);
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

/** What tells appliances that wait for approval apart, shown above the button that approves. */
function renderComparison({ states }: Texts, { comparisonCode, address }: PendingApproval): string {
  const code = [states.comparisonCode, html`<code class="compare">${comparisonCode}</code>`] as const;
  return renderDetailList(address === null ? [code] : [code, [states.registrantAddress, html`${address}`]]);
}

/** The button for the next step; nothing if none is needed. @returns HTML */
export function renderNextAction(
  texts: Texts,
  session: PageSession,
  { name, clientId, authorizeUrl, waitingForApproval }: ApplianceStatus,
  health: ApplianceHealth,
): string {
  const { overview } = texts;
  const pairForm = (text: string) =>
    csrfForm(session, appliancePath(name, 'pair'), html`<button class="primary" id="pair-${name}">${text}</button>`);
  if (waitingForApproval !== undefined) {
    const approve = html`<input type="hidden" name="client_id" value="${clientId}">
<button class="primary" id="approve-${name}">${overview.approve}</button>`;
    return html`!${renderComparison(texts, waitingForApproval)}
<div class="actions">!${csrfForm(session, appliancePath(name, 'approve'), approve)}
<a class="button danger" id="refuse-${name}" href="${appliancePath(name, 'remove')}">${overview.reject}</a></div>`;
  }
  if (authorizeUrl !== undefined) return pairForm(overview.showLink);
  if (health.kind === 'not_connected') return pairForm(overview.connect);
  return health.kind === 'log_in_again' ? pairForm(overview.connectAgain) : '';
}
