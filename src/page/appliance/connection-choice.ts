import { html } from 'ghtml';
import type { StatusReport } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { sameScope } from '../../core/connections/scope.ts';
import type { Named } from '../../core/name.ts';
import { joinTitles } from '../connection-names.ts';
import { renderSelectField } from '../form-field.ts';
import type { Texts } from '../texts/en.ts';

/** Connections in a list: a page with more would be too heavy for a phone. */
const MAX_OFFERED = 100;

/** The connections that are not only those of appliances that wait for approval. */
function approvedConnections({
  connections,
  appliances,
}: Pick<StatusReport, 'connections' | 'appliances'>): readonly ConnectionStatus[] {
  const waiting = new Set(appliances.flatMap(({ name, waitingForApproval }) => (waitingForApproval ? [name] : [])));
  return connections.filter(({ users }) => users.length === 0 || users.some(({ name }) => !waiting.has(name)));
}

/** The connections that "Connect all" connects. */
export function connectableConnections(
  status: Pick<StatusReport, 'connections' | 'appliances'>,
): readonly ConnectionStatus[] {
  return approvedConnections(status).filter(
    ({ state }) => state === 'unpaired' || state === 'pairing' || state === 'needs_pairing',
  );
}

/** The connections that a new appliance can share, those that are shared already first. */
export function sharableConnections(
  status: Pick<StatusReport, 'connections' | 'appliances'>,
): readonly ConnectionStatus[] {
  return approvedConnections(status)
    .toSorted((a, b) => Number(a.own ?? false) - Number(b.own ?? false))
    .slice(0, MAX_OFFERED);
}

/** What an appliance that asks to join could use, and what was sent if something in it is wrong. */
export interface ApprovalForm {
  /** Connections instead of its own: at any portal, with the same permissions. */
  readonly connections: readonly ConnectionStatus[];
  /** Those that are not offered, because their permissions differ. */
  readonly others: readonly ConnectionStatus[];
  /** Where it could have a login of its own. */
  readonly portals: readonly Named[];
  readonly connection?: string;
  /** Error texts, by field. */
  readonly problems?: Partial<Record<'connection' | 'portal', string>>;
}

/** The form that approves an appliance that asks to join. */
export function approvalForm(
  { connection, scope }: ApplianceStatus,
  status: Pick<StatusReport, 'connections' | 'appliances'>,
  portals: readonly Named[],
): ApprovalForm {
  const all = sharableConnections(status).filter((one) => one.name !== connection);
  const fits = (one: ConnectionStatus) => scope === null || one.scope === null || sameScope(scope, one.scope);
  return { connections: all.filter(fits), others: all.filter((one) => !fits(one)), portals };
}

/** The connections that an appliance uses: one, or several. */
export function usedConnections(
  { connection, connections: names = [connection] }: ApplianceStatus,
  connections: readonly ConnectionStatus[],
): readonly ConnectionStatus[] {
  return connections.filter(({ name }) => names.includes(name));
}

/**
 * How appliances get other permissions: those of a login that is not declared never change.
 * @param text what to do on the page that shows this
 * @returns HTML
 */
export function renderOtherPermissions({ addConnection }: Texts, text: string): string {
  return html`<p class="hint">${text}</p>
<p><a class="back" href="/connections/add">${addConnection.title}</a></p>`;
}

/** Names a connection and the appliances that use it; an own login has the name of its appliance. */
export function connectionOption(
  { name, title, users, own }: ConnectionStatus,
  texts: Texts,
): { readonly value: string; readonly text: string } {
  const { option, ownOf } = texts.connectionChoice;
  if (own) return { value: name, text: ownOf(title) };
  return { value: name, text: users.length === 0 ? title : option(title, joinTitles(users, texts)) };
}

/**
 * The list from which a person chooses the login of an appliance: one of its own, or a connection. The form's member is
 * `connection`, empty for one of its own.
 * @param id of the list
 * @returns HTML
 */
export function renderConnectionChoice(
  texts: Texts,
  id: string,
  offered: readonly ConnectionStatus[],
  {
    selected,
    hint,
    problem,
  }: { readonly selected: string; readonly hint: string | null; readonly problem?: string | undefined },
): string {
  const { label, own } = texts.connectionChoice;
  const options = [{ value: '', text: own }, ...offered.map((one) => connectionOption(one, texts))];
  return renderSelectField({ id, label, hint, problem }, 'connection', options, selected);
}

/**
 * The choice of a portal, if there are several. None is chosen already: a login at the wrong one shows late.
 * @returns HTML
 */
export function renderPortalChoice(
  field: Parameters<typeof renderSelectField>[0],
  portals: readonly Named[],
  selected: string,
  { adding }: Texts,
): string {
  if (portals.length < 2) return '';
  const options = [
    { value: '', text: adding.choosePortal },
    ...portals.map((one) => ({ value: one.name, text: one.title })),
  ];
  return renderSelectField(field, 'portal', options, selected);
}
