import { html } from 'ghtml';
import type { StatusReport } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { type ApplianceCondition, groupOfAppliances } from '../../core/health/condition.ts';
import type { PageSession } from '../../core/setup-access.ts';
import {
  type PortalTitle,
  renderHealth,
  renderLoginDetails,
  renderPairAction,
} from '../appliance/appliance-fragments.ts';
import { pastTimeElement } from '../elements.ts';
import { conditionText, isAboutOther, type LoginHealth } from '../health.ts';
import { appliancePath, connectionPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** Appliances in a card; its connection's page shows more. */
const MAX_SHOWN_IN_CARD = 12;
/** Appliances on the page of a connection. */
export const MAX_SHOWN_USERS = 100;

/**
 * The card of a connection that several appliances share, or that nobody uses: one state, and one button.
 * @param users those of all appliances
 * @param now the hub's wall clock in ms since 1970
 * @returns HTML
 */
export function renderConnectionCard(
  texts: Texts,
  session: PageSession,
  connection: ConnectionStatus,
  health: LoginHealth,
  users: ConnectionUsers,
  portalTitle: PortalTitle,
  now: number,
): string {
  const { name, title } = connection;
  return html`<li class="card ${health.needsAttention ? 'bad' : ''}" id="connection-${name}">
<h3><a href="${connectionPath(name)}" id="open-connection-${name}">${texts.connection.title(title)}</a></h3>
<div>!${connection.users.length === 0 ? '' : html`<p class="quiet">${texts.connection.usedBy}</p>`}
!${renderUserList(texts, connection, users, MAX_SHOWN_IN_CARD, now)}</div>
!${renderHealth(texts, health, false)}
!${renderConnectAction(texts, session, connection, health, portalTitle)}
!${renderLoginDetails(texts, connection, portalTitle, now)}</li>`;
}

/**
 * The button that leads to the login at the portal, if one is needed or open.
 * @param portalTitle null: it does not name the portal
 * @returns HTML
 */
export function renderConnectAction(
  texts: Texts,
  session: PageSession,
  connection: ConnectionStatus,
  health: LoginHealth,
  portalTitle: PortalTitle = null,
): string {
  const { name } = connection;
  return renderPairAction(texts, session, connection, health, {
    action: connectionPath(name, 'pair'),
    id: `pair-connection-${name}`,
    portalTitle,
  });
}

/**
 * Links to the appliances that use a connection, each with when it last got a token, and what is wrong with it besides the
 * login.
 * @param detailsOf those of all appliances
 * @param max more are only counted
 * @param now the hub's wall clock in ms since 1970
 * @returns HTML
 */
export function renderUserList(
  texts: Texts,
  { name: connectionName, title: connectionTitle, users }: ConnectionStatus,
  detailsOf: ConnectionUsers,
  max: number,
  now: number,
): string {
  const { connection, batch } = texts;
  if (users.length === 0) return html`<p class="quiet">${connection.unused}</p>`;
  const items = users.slice(0, max).map(({ name, title }) => {
    const { conditions = [], lastToken: ofAll = null, usage, ...details } = detailsOf.get(name) ?? {};
    const ofConnection = usage?.find((one) => one.connection === connectionName);
    const lastToken = ofConnection === undefined ? ofAll : ofConnection.lastToken;
    const last =
      lastToken === null
        ? ''
        : html` <span class="quiet">(!${pastTimeElement(texts, Date.parse(lastToken), now)})</span>`;
    const notes = conditions
      .filter(({ code }) => !isAboutOther(code, details, connectionTitle))
      .map(({ code }) => html`<p>${conditionText(code, title, details, texts)}</p>`);
    return html`<li><a class="back" href="${appliancePath(name)}">${title}</a>!${last}!${notes}</li>`;
  });
  const more = users.length > max ? html`<p class="quiet">${batch.more(users.length - max)}</p>` : '';
  return html`<ul class="users">!${items}</ul>!${more}`;
}

/** What is shown of each appliance beside its connection: its own conditions, and when it last got a token. */
type ConnectionUsers = ReadonlyMap<
  string,
  Pick<ApplianceStatus, 'lastToken' | 'usage' | 'unusualConnection'> & {
    readonly conditions: readonly ApplianceCondition[];
  }
>;

/** The appliances by their names. */
export function connectionUsers({
  appliances,
  conditions,
}: Pick<StatusReport, 'appliances' | 'conditions'>): ConnectionUsers {
  const own = groupOfAppliances(conditions);
  return new Map(appliances.map((one) => [one.name, { ...one, conditions: own.get(one.name) ?? [] }]));
}
