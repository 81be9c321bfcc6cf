import { html } from 'ghtml';
import {
  APPLIANCE_FIELDS,
  type ApplianceStatus,
  type PendingApproval,
} from '../../core/appliances/appliance-status.ts';
import {
  CONNECTION_FIELDS,
  type ConnectionStatus,
  type LoginStatus,
} from '../../core/connections/connection-status.ts';
import { keysOf } from '../../core/keys.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { type FieldValue, fieldTime, type StatusField } from '../../core/status-field.ts';
import { joinTitles } from '../connection-names.ts';
import { dateTimeElement, icon, pastTimeElement, timeElement } from '../elements.ts';
import { type LoginHealth, userCodeOf } from '../health.ts';
import { csrfForm } from '../installer-page.ts';
import { appliancePath, approvalPath, connectionPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';
import { type ApprovalForm, renderConnectionChoice, renderPortalChoice } from './connection-choice.ts';

/**
 * The state of an appliance or a connection as text and icon, and what to do.
 * @param isAnnounced whether screen readers announce changes of the state; false on pages with many appliances
 * @returns HTML
 */
export function renderHealth({ states }: Texts, { kind, severity, advice }: LoginHealth, isAnnounced: boolean): string {
  return html`<p class="state ${severity}"!${isAnnounced ? ' role="status"' : ''}>!${icon(severity)}<span>${states.kinds[kind]}</span></p>
!${advice.map((text) => html`<p>${text}</p>`)}`;
}

/** What {@link renderLoginDetails} shows of an appliance or a connection. */
type LoginDetails = LoginStatus &
  Partial<Pick<ConnectionStatus, keyof typeof CONNECTION_FIELDS>> &
  Pick<ApplianceStatus, 'waitingForApproval'>;

/** Returns what people call a portal, by its name; null if it is not to be named. */
export type PortalTitle = ((name: string) => string) | null;

/** A name as text, and a value as HTML. */
export type DetailRow = readonly [name: string, value: string];

/**
 * The rows of the fields that the page shows, without those that have no value.
 * @param values the status of what has these fields
 * @param now the hub's wall clock in ms since 1970
 */
export function fieldRows<Name extends string>(
  texts: Texts,
  fields: Readonly<Record<Name, StatusField>>,
  values: Readonly<Partial<Record<NoInfer<Name>, FieldValue>>>,
  now: number,
): DetailRow[] {
  const labels: Readonly<Record<string, string>> = texts.states.fields;
  return keysOf(fields).flatMap((name): DetailRow[] => {
    const [field, label, value] = [fields[name], labels[name], values[name] ?? null];
    if (field.isOnPage !== true || label === undefined || value === null) return [];
    const time = fieldTime(field, value, now);
    if (time === null) return [[label, html`${value}`]];
    return [[label, (field.kind === 'instant' ? pastTimeElement : timeElement)(texts, time, now)]];
  });
}

/**
 * The details of an appliance's login or of a connection, as pairs of name and value.
 * @param portalTitle null: its portal is not named
 * @param now the hub's wall clock in ms since 1970
 * @param before rows that come first
 * @param after rows that come last
 * @returns HTML
 */
export function renderLoginDetails(
  texts: Texts,
  login: LoginDetails,
  portalTitle: PortalTitle,
  now: number,
  { before = [], after = [] }: { readonly before?: readonly DetailRow[]; readonly after?: readonly DetailRow[] } = {},
): string {
  const { adding, overview, states } = texts;
  const { scope, expiresIn, portal, account, waitingForApproval, problem, pairingFailed } = login;
  const rows: DetailRow[] = [
    ...before,
    [adding.scope, scope === null ? html`${overview.scopeByPortal}` : html`${scope}`],
  ];
  // Whoever approves it chooses the portal.
  if (portalTitle !== null && waitingForApproval === undefined)
    rows.push([adding.portal, html`${portalTitle(portal)}`]);
  if (account !== null) rows.push([overview.account, html`${account}`]);
  if (waitingForApproval !== undefined) {
    const { since, softwareId } = waitingForApproval;
    if (softwareId !== null) rows.push([states.softwareId, html`${softwareId}`]);
    rows.push([overview.registered, pastTimeElement(texts, Date.parse(since), now)]);
  }
  rows.push(...fieldRows(texts, CONNECTION_FIELDS, login, now));
  if (pairingFailed !== undefined)
    rows.push([states.lastPairing, pastTimeElement(texts, Date.parse(pairingFailed.at), now)]);
  if (problem !== null) rows.push([states.problemSince, pastTimeElement(texts, Date.parse(problem.since), now)]);
  if (problem !== null && expiresIn !== null && expiresIn > 0) {
    rows.push([states.tokenExpires, timeElement(texts, now + expiresIn * 1000, now)]);
  }
  return renderDetailList([...rows, ...after]);
}

/** When the appliance last got a token, and whether it asks with wrong credentials. */
export function usageRows(texts: Texts, appliance: ApplianceStatus, now: number): DetailRow[] {
  const { states } = texts;
  const { unusualUsage, refused, usage } = appliance;
  const rows = usage === undefined ? fieldRows(texts, APPLIANCE_FIELDS, appliance, now) : [];
  if (usage === undefined && unusualUsage === 'never_served')
    rows.push([states.fields.lastToken, html`${states.neverServed}`]);
  for (const { title, lastToken } of usage ?? []) {
    const when = lastToken === null ? html`${states.neverServed}` : pastTimeElement(texts, Date.parse(lastToken), now);
    rows.push([`${states.fields.lastToken}: ${title}`, when]);
  }
  if (refused === undefined) return rows;
  const { count, address, since } = refused;
  const when = dateTimeElement(texts, Date.parse(since));
  return [...rows, [states.refusedRequests, html`${states.refusals(count, address)} !${when}`]];
}

function renderDetailList(rows: readonly DetailRow[]): string {
  return html`<dl class="facts">!${renderRows(rows)}</dl>`;
}

/** Rows of a list of details. @returns HTML */
export function renderRows(rows: readonly DetailRow[]): string[] {
  return rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>!${value}</dd></div>`);
}

/**
 * A link to the confirmation of something that cannot be undone, and below it in one sentence what that does.
 * @param id of the link
 * @returns HTML
 */
export function renderEndingLink(id: string, href: string, text: string, meaning: string): string {
  return html`<div class="stack"><a class="button danger" id="${id}" href="${href}" aria-describedby="${id}-meaning">${text}</a>
<p class="hint" id="${id}-meaning">${meaning}</p></div>`;
}

/** What tells appliances that wait for approval apart, shown above the button that approves. */
function renderComparison({ states }: Texts, { comparisonCode, address }: PendingApproval): string {
  const code = [states.comparisonCode, html`<code class="compare">${comparisonCode}</code>`] as const;
  return renderDetailList([code, [states.registrantAddress, html`${address}`]]);
}

/**
 * The button for an appliance's next step; nothing if none is needed.
 * @param approval returns the form, if it waits for approval
 * @param portalTitle null: the button does not name the portal
 * @returns HTML
 */
export function renderNextAction(
  texts: Texts,
  session: PageSession,
  appliance: ApplianceStatus,
  health: LoginHealth,
  approval: () => ApprovalForm,
  portalTitle: PortalTitle = null,
): string {
  const { name, clientId, waitingForApproval, connection, connections } = appliance;
  const { overview } = texts;
  if (waitingForApproval === undefined) {
    return renderPairAction(texts, session, appliance, health, {
      // Of several logins, the one that is shown, and not the one that most needs somebody by then.
      action: connections === undefined ? appliancePath(name, 'pair') : connectionPath(connection, 'pair'),
      id: `pair-${name}`,
      portalTitle,
    });
  }
  const { connections: offered, others, portals, connection: selected = '', problems = {} } = approval();
  const { hint, notOffered } = texts.connectionChoice;
  const choice =
    offered.length === 0
      ? ''
      : renderConnectionChoice(texts, `login-${name}`, offered, { selected, hint, problem: problems.connection });
  const portal = {
    id: `portal-${name}`,
    label: texts.adding.portal,
    hint: null,
    problem: problems.portal,
    onlyForOwn: true,
  };
  const approve = html`<input type="hidden" name="client_id" value="${clientId}">!${choice}
!${others.length === 0 ? '' : html`<p class="hint">${notOffered(joinTitles(others, texts))}</p>`}
!${renderPortalChoice(portal, portals, '', texts)}
<button class="primary" id="approve-${name}">${overview.approve}</button>`;
  return html`!${renderComparison(texts, waitingForApproval)}
<div class="actions">!${csrfForm(session, appliancePath(name, 'approve'), approve, 'stack')}
<a class="button danger" id="refuse-${name}" href="${appliancePath(name, 'remove')}">${overview.reject}</a></div>`;
}

/**
 * The button that leads to the login at the portal, if one is needed or open, or to another page that helps.
 * @param form the path of the form that starts a pairing, the id of its button, and what that calls the portal
 * @returns HTML
 */
export function renderPairAction(
  { overview }: Texts,
  session: PageSession,
  { authorizeUrl, state, portal }: LoginStatus,
  { kind, remedy }: LoginHealth,
  { action, id, portalTitle }: { readonly action: string; readonly id: string; readonly portalTitle: PortalTitle },
): string {
  const other =
    remedy === null ? '' : html`<a class="button primary" id="fix-${id}" href="${remedy.href}">${remedy.text}</a>`;
  const pairForm = (text: keyof Texts['overview']['at']) => {
    const label = portalTitle === null ? overview[text] : overview.at[text](portalTitle(portal));
    const button = html`<button class="${remedy === null ? 'primary' : ''}" id="${id}">${label}</button>`;
    return html`!${other}!${csrfForm(session, action, button)}`;
  };
  if (authorizeUrl !== undefined) {
    const userCode = state === 'active' || state === 'retrying' ? userCodeOf(authorizeUrl) : null;
    return userCode === null
      ? pairForm('showLink')
      : html`<a class="button primary" id="${id}" href="${approvalPath(userCode)}">${overview.decide}</a>`;
  }
  if (kind === 'not_connected') return pairForm('connect');
  return kind === 'log_in_again' ? pairForm('connectAgain') : other;
}
