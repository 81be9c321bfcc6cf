import { html } from 'ghtml';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import type { Condition } from '../../core/health/condition.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { renderHealth, renderLoginDetails, renderPairAction } from '../appliance/appliance-fragments.ts';
import type { LoginHealth } from '../health.ts';
import { appliancePath, connectionPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** Appliances in a card; its connection's page shows more. */
const MAX_SHOWN_IN_CARD = 12;
/** Appliances on the page of a connection. */
export const MAX_SHOWN_USERS = 100;

/**
 * The card of a connection that several appliances share, or that nobody uses: one state, and one button.
 * @param users their conditions, by the appliance's name
 * @param now the hub's wall clock in ms since 1970
 * @returns HTML
 */
export function renderConnectionCard(
  texts: Texts,
  session: PageSession,
  connection: ConnectionStatus,
  health: LoginHealth,
  users: ReadonlyMap<string, readonly Condition[]>,
  showsPortal: boolean,
  now: number,
): string {
  const { name, title, appliances } = connection;
  return html`<li class="card ${health.needsAttention ? 'bad' : ''}" id="connection-${name}">
<h3><a href="${connectionPath(name)}" id="open-connection-${name}">${texts.connection.title(title)}</a></h3>
<div>!${appliances.length === 0 ? '' : html`<p class="quiet">${texts.connection.usedBy}</p>`}
!${renderUserList(texts, connection, users, MAX_SHOWN_IN_CARD)}</div>
!${renderHealth(texts, health, false)}
!${renderConnectAction(texts, session, connection, health, showsPortal)}
!${renderLoginDetails(texts, connection, showsPortal, now)}</li>`;
}

/**
 * The button that leads to the login at the portal, if one is needed or open.
 * @param namesPortal whether it names the portal
 * @returns HTML
 */
export function renderConnectAction(
  texts: Texts,
  session: PageSession,
  connection: ConnectionStatus,
  health: LoginHealth,
  namesPortal = false,
): string {
  const { name } = connection;
  return renderPairAction(texts, session, connection, health, {
    action: connectionPath(name, 'pair'),
    id: `pair-connection-${name}`,
    namesPortal,
  });
}

/**
 * Links to the appliances that use a connection, each with what is wrong with it besides the login.
 * @param conditions of appliances, by name
 * @param max more are only counted
 * @returns HTML
 */
export function renderUserList(
  { connection: texts, states, batch }: Texts,
  { appliances, applianceTitles }: ConnectionStatus,
  conditions: ReadonlyMap<string, readonly Condition[]>,
  max: number,
): string {
  if (appliances.length === 0) return html`<p class="quiet">${texts.unused}</p>`;
  const items = appliances.slice(0, max).map((name, index) => {
    const title = applianceTitles[index] ?? name;
    const notes = (conditions.get(name) ?? []).flatMap(({ code, connection }) =>
      connection === null ? [] : html`<p>${states.conditions[code](title)}</p>`,
    );
    return html`<li><a class="back" href="${appliancePath(name)}">${title}</a>!${notes}</li>`;
  });
  const more = appliances.length > max ? html`<p class="quiet">${batch.more(appliances.length - max)}</p>` : '';
  return html`<ul class="users">!${items}</ul>!${more}`;
}

/** The conditions of appliances alone, without those of their connections, by the appliance's name. */
export function groupByUser(conditions: readonly Condition[]): ReadonlyMap<string, readonly Condition[]> {
  const groups = new Map<string, Condition[]>();
  for (const condition of conditions) {
    if (condition.appliance === null) continue;
    const group = groups.get(condition.appliance);
    if (group === undefined) groups.set(condition.appliance, [condition]);
    else group.push(condition);
  }
  return groups;
}
