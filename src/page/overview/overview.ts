import { html } from 'ghtml';
import { HUB_FIELDS, type HubStatus, type SiteHubStatus, type StatusReport } from '../../core/administration.ts';
import { type Condition, concernsHub, groupByAppliance } from '../../core/health/condition.ts';
import type { Named } from '../../core/name.ts';
import type { CloudChoice } from '../../core/portals/portal-administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { urlHost } from '../../system/addresses.ts';
import type { PageServices } from '../administration-view.ts';
import {
  fieldRows,
  type PortalTitle,
  renderHealth,
  renderLoginDetails,
  renderNextAction,
  renderRows,
  usageRows,
} from '../appliance/appliance-fragments.ts';
import { approvalForm, connectableConnections, usedConnections } from '../appliance/connection-choice.ts';
import { connectionUsers, renderConnectionCard } from '../connection/connection-fragments.ts';
import { titlesOf } from '../connection-names.ts';
import { type DisplaySeverity, icon, pastTimeElement, timeElement } from '../elements.ts';
import { applianceHealth, connectionHealth, displaySeverity, hubHealth, SEVERITY_ORDER } from '../health.ts';
import { csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import { renderCloudList } from '../portals/cloud-list.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import { renderSetupCodeForm } from '../sign-in/setup-code.ts';
import type { Texts } from '../texts/en.ts';

/** Cards on the page; more would be too heavy for a phone in a cellar. */
const MAX_SHOWN_CARDS = 60;
/** The command that shows all of them. */
const STATUS_COMMAND = 'latchkey status';

/** How long appliances may register themselves, in seconds. */
const REGISTRATION_SECONDS = 600;

/** Serves the overview, and the forms that open and close registration. */
export function serveOverview(guard: AuthenticatedRoutes, { administration, clock, sendsNotices }: PageServices): void {
  guard.page('/', async (req) => {
    const status = await administration.status();
    const { wall } = clock.now();
    const portals = administration.portals();
    const clouds = portals.length === 0 ? (await administration.cloudChoices()).clouds : [];
    const page = overviewPage(status, req.context, req.session, portals, wall, { clouds, sendsNotices });
    return sendInstallerPage(req, 200, page);
  });
  for (const [path, seconds] of [
    ['/registration/open', REGISTRATION_SECONDS],
    ['/registration/close', 0],
  ] as const) {
    guard.form(path, async ({ reply, administration: own }) => {
      await own.openRegistration(seconds);
      return reply.redirect('/', 303);
    });
  }
}

/**
 * The overview: the hub's health, and each appliance.
 * @param portals the configured portals
 * @param now the hub's wall clock, in ms since 1970
 * @param more `clouds`: those to choose from if there is no portal; `sendsNotices`: see {@link PageServices}
 */
export function overviewPage(
  status: StatusReport,
  context: PageContext,
  session: PageSession,
  portals: readonly Named[],
  now: number,
  {
    clouds = [],
    sendsNotices = false,
  }: { readonly clouds?: readonly CloudChoice[]; readonly sendsNotices?: boolean | undefined } = {},
): InstallerPage {
  const { texts, ingress } = context;
  const { overview } = texts;
  const { hub, conditions } = status;
  const portalTitle = portals.length > 1 ? titlesOf(portals) : null;
  const cards = [
    ...applianceCards(status, texts, session, portals, now),
    ...connectionCards(status, texts, session, portalTitle, now),
  ].toSorted((a, b) => SEVERITY_ORDER.indexOf(a.severity) - SEVERITY_ORDER.indexOf(b.severity));
  const { severity, headline } = hubHealth(status, texts);
  const isWaiting =
    hub.registrationOpenFor !== undefined || status.connections.some(({ state }) => state === 'pairing');
  const shown = cards.filter(({ isAlwaysShown }, index) => index < MAX_SHOWN_CARDS || isAlwaysShown);
  const hiddenCount = cards.length - shown.length;
  const more =
    hiddenCount > 0
      ? html`<p class="quiet">${texts.batch.more(hiddenCount)}</p><p><code>${STATUS_COMMAND}</code></p>`
      : '';
  const list = html`<section class="stack" aria-labelledby="appliances"><h2 id="appliances">${overview.appliances}</h2>
<ul class="cards">!${shown.map(({ render }) => render())}</ul>!${more}</section>`;
  return {
    title: overview.title,
    now,
    live: true,
    isWaiting,
    body: html`<div class="health" role="status">!${icon(severity)}<h1 id="health">${headline}</h1></div>
!${renderHubConditions(texts, conditions)}
!${renderRegistrationWarning(texts, status)}
!${portals.length === 0 ? renderCloudChoice(texts, clouds) : renderAdding(texts, session, status)}
!${cards.length === 0 ? '' : list}
!${portals.length === 0 ? '' : renderMore(texts, session, hub, ingress !== undefined, now)}
!${ingress === undefined ? html`<p><a class="back" id="browsers" href="/browsers">${texts.browsers.heading}</a></p>` : ''}
!${renderAbout(texts, status, now, sendsNotices, ingress === undefined ? renderSetupCodeForm({ context, session }) : '')}`,
  };
}

/** Nothing else can be done before a cloud is chosen. */
function renderCloudChoice(texts: Texts, clouds: readonly CloudChoice[]): string {
  const { choose, chooseText } = texts.portal;
  return html`<section class="stack" aria-labelledby="choose-cloud"><h2 id="choose-cloud">${choose}</h2><p>${chooseText}</p>
!${renderCloudList(texts, clouds)}</section>`;
}

/** What adds and connects appliances. */
function renderAdding(texts: Texts, session: PageSession, status: StatusReport): string {
  const isEmpty = status.appliances.length + status.connections.length === 0;
  return html`!${isEmpty ? html`<p>${texts.overview.addFirst}</p>` : ''}!${renderActions(texts, session, status)}`;
}

/** Other ways to add appliances, and the pages of logins and clouds. */
function renderMore(texts: Texts, session: PageSession, hub: HubStatus, isProxied: boolean, now: number): string {
  return html`!${renderRegistration(texts, session, hub, now)}
!${renderConnectByCode(texts, hub, isProxied)}
<p><a class="back" id="add-connection" href="/connections/add">${texts.addConnection.title}</a></p>
<p><a class="back" id="portals" href="/portals">${texts.portal.manage}</a></p>`;
}

/** An item of the list on the overview. */
interface Card {
  /** Returns its HTML. */
  readonly render: () => string;
  readonly severity: DisplaySeverity;
  /** Shown even if there are more cards than {@link MAX_SHOWN_CARDS}. */
  readonly isAlwaysShown: boolean;
}

/** The cards of appliances with connections of their own, and of those that wait for approval. */
function applianceCards(
  status: StatusReport,
  texts: Texts,
  session: PageSession,
  portals: readonly Named[],
  now: number,
): Card[] {
  const portalTitle = portals.length > 1 ? titlesOf(portals) : null;
  const connections = new Map(status.connections.map((connection) => [connection.name, connection]));
  const conditionsOf = groupByAppliance(status.conditions);
  const noticesOf = groupByAppliance(status.notices);
  return status.appliances.flatMap((appliance) => {
    const { name, title, waitingForApproval } = appliance;
    const connection = connections.get(appliance.connection);
    if (connection?.own !== true && waitingForApproval === undefined) return [];
    const used = usedConnections(appliance, status.connections);
    const health = applianceHealth(appliance, conditionsOf.get(name) ?? [], noticesOf.get(name) ?? [], used, texts);
    const details = { ...appliance, ...connection };
    const render = () => html`<li class="card ${health.needsAttention ? 'bad' : ''}" id="appliance-${name}">
<h3><a href="${appliancePath(name)}" id="open-${name}">${title}</a></h3>
!${renderHealth(texts, health, false)}
!${renderNextAction(texts, session, appliance, health, () => approvalForm(appliance, status, portals), portalTitle)}
!${renderLoginDetails(texts, details, portalTitle, now, { after: usageRows(texts, appliance, now) })}</li>`;
    // A stranger's requests must not hide the installer's own appliance.
    return { render, severity: health.severity, isAlwaysShown: waitingForApproval !== undefined };
  });
}

/** The cards of connections that several appliances share, or that nobody uses. */
function connectionCards(
  { appliances, connections, conditions, notices }: StatusReport,
  texts: Texts,
  session: PageSession,
  portalTitle: PortalTitle,
  now: number,
): Card[] {
  const healthOf = connectionHealth({ conditions, notices }, texts);
  const users = connectionUsers({ appliances, conditions });
  return connections.flatMap((connection) => {
    if (connection.own) return [];
    const health = healthOf(connection);
    const render = () => renderConnectionCard(texts, session, connection, health, users, portalTitle, now);
    return { render, severity: health.overallSeverity, isAlwaysShown: false };
  });
}

function renderHubConditions({ states, overview }: Texts, conditions: readonly Condition[]): string {
  const items = conditions.flatMap((condition) => {
    // The page offers the clouds to choose from.
    if (!concernsHub(condition) || condition.code === 'no_portal') return [];
    const severity = displaySeverity(condition);
    const { code, address } = condition;
    const text = [states.hub[code], ...(address === undefined ? [] : [states.deviceAddress(address)])].join(' ');
    return html`<p class="notice ${severity}">!${icon(severity)}<span>${text}</span></p>`;
  });
  if (items.length === 0) return '';
  return html`<section class="stack" aria-label="${overview.hubConditions}">!${items}</section>`;
}

/** If several appliances have registered, one that waits for approval may be a stranger's. */
function renderRegistrationWarning({ overview }: Texts, { hub, appliances }: StatusReport): string {
  const { registrationAsked = 0 } = hub;
  if (registrationAsked < 2 || appliances.every(({ waitingForApproval }) => waitingForApproval === undefined))
    return '';
  return html`<p class="notice warn" id="several-asked">!${icon('warn')}<span>${overview.severalRegistered(registrationAsked)}</span></p>`;
}

function renderActions(
  { overview, adding }: Texts,
  session: PageSession,
  status: Pick<StatusReport, 'connections' | 'appliances'>,
): string {
  const isFirst = status.appliances.length === 0;
  const add = html`<a class="button ${isFirst ? 'primary' : ''}" id="add" href="/appliances/add">${adding.title}</a>`;
  if (connectableConnections(status).length < 2) return html`<div class="actions">!${add}</div>`;
  const all = csrfForm(
    session,
    '/pair-all',
    html`<button class="primary" id="pair-all">${overview.connectAll}</button>`,
  );
  return html`<div class="actions">!${all}<p class="hint">${overview.connectAllHint}</p></div><div class="actions">!${add}</div>`;
}

function renderRegistration(
  texts: Texts,
  session: PageSession,
  { registrationOpenFor }: HubStatus,
  now: number,
): string {
  const { overview } = texts;
  const button = (path: string, text: string) =>
    html`<div class="actions">!${csrfForm(session, path, html`<button id="registration">${text}</button>`)}</div>`;
  const isOpen = registrationOpenFor !== undefined;
  const content = isOpen
    ? html`<p>${overview.registrationOpen} !${timeElement(texts, now + registrationOpenFor * 1000, now)}. ${overview.registrationOpenHint}</p>
!${button('/registration/close', overview.closeRegistration)}`
    : html`<p class="quiet">${overview.registrationHint}</p>!${button('/registration/open', overview.openRegistration)}`;
  return html`<details id="registration-part" !${isOpen ? 'open' : ''}><summary>${overview.registration}</summary>
!${content}</details>`;
}

/** The page that takes an appliance's code is only at the hub's own address, and no other site can frame it. */
function renderConnectByCode({ overview }: Texts, { address, httpsPort }: HubStatus, isProxied: boolean): string {
  if (!isProxied) return html`<p><a class="back" href="/pair">${overview.connectByCode}</a></p>`;
  if (address === null) return '';
  const url = `https://${urlHost(address)}:${httpsPort}/pair`;
  return html`<p><a class="back" href="${url}" target="_blank" rel="noopener noreferrer">${overview.connectByCode}</a></p>`;
}

/** @param setupCode HTML */
function renderAbout(
  texts: Texts,
  { hub, site }: StatusReport,
  now: number,
  sendsNotices: boolean,
  setupCode: string,
): string {
  const { overview } = texts;
  const { address, caFingerprint } = hub;
  return html`<details id="about"><summary>${overview.about}</summary>
<dl class="facts">!${renderRows(fieldRows(texts, HUB_FIELDS, hub, now))}
<div><dt>${overview.address}</dt><dd>${address ?? overview.noAddress}</dd></div>
<div><dt>${overview.pin}</dt><dd><code>${caFingerprint}</code></dd></div>
!${site === undefined ? '' : site.hubs.map((one) => renderSiteHub(texts, one, now))}</dl>
<p class="quiet">${sendsNotices ? overview.noticesSent : overview.noticesHere}</p>!${setupCode}</details>`;
}

/** A hub of the site, with when it was last seen. */
function renderSiteHub(
  texts: Texts,
  { name, address, version, lastSeen, thisHub }: SiteHubStatus,
  now: number,
): string {
  const { overview, states } = texts;
  const seen = thisHub
    ? overview.thisHub
    : html`${overview.lastSeen} !${pastTimeElement(texts, Date.parse(lastSeen), now)}`;
  return html`<div class="site-hub"><dt>${overview.siteHub(name)}</dt><dd>${address ?? overview.noAddress}, ${states.fields.version} ${version}, !${seen}</dd></div>`;
}
