import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration, StatusReport } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import { type Condition, concernsHub } from '../../core/health/condition.ts';
import type { Named } from '../../core/name.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { findAppliance, type PageServices } from '../administration-view.ts';
import { titlesOf } from '../connection-names.ts';
import { applianceHealth } from '../health.ts';
import { pathParameter } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, FormSubmission, PageContext } from '../page-context.ts';
import { appliancePath, connectionPath } from '../paths.ts';
import { renderRenaming, serveRenaming } from '../rename.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import {
  type DetailRow,
  renderEndingLink,
  renderHealth,
  renderLoginDetails,
  renderNextAction,
  renderRows,
  usageRows,
} from './appliance-fragments.ts';
import { confirmationPage, removalConfirmation } from './confirmations.ts';
import { type ApprovalForm, approvalForm, renderOtherPermissions, usedConnections } from './connection-choice.ts';
import { renderHistory } from './history.ts';
import { serveMove } from './move.ts';

/** Serves the page of each appliance, and its forms. */
export function serveAppliances(guard: AuthenticatedRoutes, { administration, clock }: PageServices): void {
  /** @param rejected what is wrong with an approval */
  async function sendAppliancePage(req: AuthenticatedRequest, rejected?: RejectedApproval): Promise<FastifyReply> {
    const { appliance, status } = await findAppliance(req, administration);
    const history = await administration.history(appliance.connection);
    const { wall: now } = clock.now();
    const hasUnusedSecret = administration.hasUnusedSecret(appliance.name);
    const view = { appliance, status, portals: administration.portals(), history, now, hasUnusedSecret };
    return sendInstallerPage(
      req,
      rejected === undefined ? 200 : 400,
      appliancePage({ ...view, rejected }, req.context, req.session),
    );
  }

  guard.page('/appliances/:name', (req) => sendAppliancePage(req));
  guard.page('/appliances/:name/', (req) => sendAppliancePage(req));
  guard.page('/appliances/:name/remove', async (req) => {
    const { appliance, status } = await findAppliance(req, administration);
    if (appliance.declared) throw new Failure('appliance_declared', appliance.name);
    const { own, title = appliance.connection } = connectionOf(appliance, status.connections) ?? {};
    const confirmation = removalConfirmation(req.context.texts, appliance, own === true ? null : title);
    return sendInstallerPage(req, 200, confirmationPage(confirmation, req.context, req.session));
  });
  guard.form('/appliances/:name/remove', async (submission) => {
    await submission.administration.removeAppliance(pathParameter(submission, 'name'));
    return submission.reply.redirect('/', 303);
  });
  guard.form('/appliances/:name/approve', async (submission) => {
    const rejected = await approve(submission, administration);
    if (rejected !== null) return sendAppliancePage(submission, rejected);
    return submission.reply.redirect(appliancePath(pathParameter(submission, 'name')), 303);
  });
  serveMove(guard, administration);
  serveRenaming(guard, '/appliances/:name/rename', async (req) => {
    const { title } = (await findAppliance(req, administration)).appliance;
    const name = pathParameter(req, 'name');
    return { title, path: appliancePath(name), rename: (to) => req.administration.renameAppliance(name, to) };
  });
}

type RejectedApproval = Pick<ApprovalForm, 'connection' | 'problems'>;

/**
 * Approves the appliance that the page showed, found by its client ID: another one may have its name by now.
 * @returns what is wrong with the form; null if nothing is
 */
async function approve(
  submission: FormSubmission,
  administration: Pick<Administration, 'status' | 'portals'>,
): Promise<RejectedApproval | null> {
  const { form, context } = submission;
  const name = pathParameter(submission, 'name');
  const { appliances, connections } = await administration.status();
  const appliance = appliances.find((one) => one.name === name && one.clientId === form.get('client_id'));
  if (appliance === undefined) throw new Failure('appliance_unknown', name);
  const { title, scope, waitingForApproval } = appliance;
  const connection = form.get('connection') || null;
  const portals = connection === null ? administration.portals() : [];
  const portal = portals.length > 1 ? (form.get('portal') ?? '') : null;
  if (portal === '') return { problems: { portal: context.texts.adding.portalMissing } };
  try {
    if (waitingForApproval !== undefined)
      await submission.administration.approveAppliance(name, waitingForApproval.comparisonCode, connection, portal);
    return null;
  } catch (error) {
    const offered = connections.find((one) => one.name === connection);
    if (!(error instanceof Failure && error.code === 'connection_mismatch') || offered === undefined) throw error;
    const { mismatch, noPermissions } = context.texts.connectionChoice;
    const text = mismatch(title, scope ?? noPermissions, offered.title, offered.scope ?? noPermissions);
    return { connection: offered.name, problems: { connection: text } };
  }
}

/** What the page of an appliance shows. */
interface ApplianceView {
  readonly appliance: ApplianceStatus;
  readonly status: Omit<StatusReport, 'hub'>;
  readonly portals: readonly Named[];
  readonly history: readonly HistoryEntry[];
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
  /** It got another secret, and has not asked with it. */
  readonly hasUnusedSecret?: boolean;
  /** An approval of it with something wrong; left out otherwise. */
  readonly rejected?: RejectedApproval | undefined;
}

/** The page of one appliance: its state, its actions and its history. */
export function appliancePage(view: ApplianceView, { texts }: PageContext, session: PageSession): InstallerPage {
  const { appliance, status, portals, history, now, rejected, hasUnusedSecret } = view;
  const { name, title, state } = appliance;
  const concernsIt = ({ appliances }: { readonly appliances: readonly string[] }) => appliances.includes(name);
  const used = usedConnections(appliance, status.connections);
  const health = applianceHealth(
    appliance,
    status.conditions.filter(concernsIt),
    status.notices.filter(concernsIt),
    used,
    texts,
  );
  const isWell = health.severity === 'good' && health.advice.length === 0 && !status.conditions.some(isErrorOfHub);
  const connection = connectionOf(appliance, status.connections);
  const before = connectionRow(texts, used);
  const after = [...usageRows(texts, appliance, now), ...countRow(texts, appliance)];
  const single = used.length < 2;
  const details = single
    ? renderLoginDetails(texts, { ...appliance, ...connection }, titlesOf(portals), now, { before, after })
    : html`<dl class="facts">!${renderRows([...before, ...after])}</dl>`;
  const approval = () => ({ ...approvalForm(appliance, status, portals), ...rejected });
  return {
    title,
    now,
    live: rejected === undefined,
    isWaiting: state === 'pairing',
    body: html`!${backLink('/', texts.installer.overview)}
<div class="two"><div class="stack head">
<h1>${title}</h1>
<section class="card ${health.needsAttention ? 'bad' : ''}" aria-label="${texts.appliance.state}">!${renderHealth(texts, health, true)}
!${isWell ? html`<p>${hasUnusedSecret ? texts.states.secretUnused(title) : texts.states.allWell}</p>` : ''}
!${renderNextAction(texts, session, appliance, health, approval)}
!${details}</section>
!${single ? '' : renderAddresses(texts, used)}</div>
!${single ? renderHistory(texts, history, now) : ''}
!${renderManagement(texts, session, appliance, { isShared: connection?.own !== true, canMove: status.connections.length > 1 })}</div>`,
  };
}

/** With such an error an appliance may get no access, although its login is fine. */
function isErrorOfHub(condition: Condition): boolean {
  return concernsHub(condition) && condition.severity === 'error';
}

function connectionOf(
  { connection }: ApplianceStatus,
  connections: readonly ConnectionStatus[],
): ConnectionStatus | undefined {
  return connections.find(({ name }) => name === connection);
}

/** Names the connections of an appliance, if it has more than one of its own. */
function connectionRow({ connectionChoice }: Texts, used: readonly ConnectionStatus[]): DetailRow[] {
  if (used.every(({ own }) => own)) return [];
  const links = used.map(
    ({ name, title }) => html`<li><a class="back" href="${connectionPath(name)}">${title}</a></li>`,
  );
  return [
    [used.length > 1 ? connectionChoice.several : connectionChoice.label, html`<ul class="users">!${links}</ul>`],
  ];
}

/** How a program with several connections gets a token of each: at an address of its own. */
function renderAddresses({ connectionChoice }: Texts, used: readonly ConnectionStatus[]): string {
  const rows = used.map(
    ({ name, title }) => [title, html`<code>${connectionPath(name, 'oauth/token')}</code>`] as const,
  );
  return html`<section class="card" aria-labelledby="addresses"><h2 id="addresses">${connectionChoice.addresses}</h2>
<p>${connectionChoice.addressesText}</p><dl class="facts">!${renderRows(rows)}</dl></section>`;
}

/** How many tokens the appliance got. */
function countRow({ overview }: Texts, { lastToken, tokens }: ApplianceStatus): DetailRow[] {
  if (lastToken === null) return [];
  return [[overview.tokenCounts, html`${overview.tokens(tokens.today, tokens.last14Days)}`]];
}

function renderManagement(
  all: Texts,
  session: PageSession,
  appliance: ApplianceStatus,
  { isShared, canMove }: { readonly isShared: boolean; readonly canMove: boolean },
): string {
  const { appliance: texts, overview, connectionChoice } = all;
  const { name, title, state, connection, clientId, declared, waitingForApproval, authorizeUrl, credentialsDamaged } =
    appliance;
  const { withoutRefreshToken } = appliance;
  const hasGrant = state === 'active' || state === 'retrying' || state === 'needs_pairing';
  const isWaiting = waitingForApproval !== undefined;
  const daily: string[] = [];
  // Those of a shared connection are on its own page, because they concern its other appliances too.
  if (hasGrant && !isShared && withoutRefreshToken !== true)
    daily.push(
      csrfForm(session, connectionPath(connection, 'refresh'), html`<button id="refresh">${texts.refreshNow}</button>`),
    );
  if ((state === 'active' || state === 'retrying') && authorizeUrl === undefined && !isShared) {
    daily.push(
      csrfForm(session, appliancePath(name, 'pair'), html`<button id="pair">${overview.connectAgain}</button>`),
    );
  }
  const link = (action: string, text: string) =>
    html`<a class="button" id="${action}" href="${appliancePath(name, action)}">${text}</a>`;
  const rare = [link('label', texts.doorLabel)];
  if (!declared && !credentialsDamaged) rare.push(link('rotate-secret', texts.newSecret));
  if (!declared && !credentialsDamaged && canMove) rare.push(link('move', connectionChoice.move));
  const ending: string[] = [];
  if ((hasGrant || state === 'pairing') && !isShared)
    ending.push(
      renderEndingLink('unpair', connectionPath(connection, 'unpair'), texts.disconnect, texts.disconnectMeaning),
    );
  if (!declared)
    ending.push(
      renderEndingLink(
        'remove',
        appliancePath(name, 'remove'),
        texts.remove,
        isShared ? texts.removeFromLoginMeaning : texts.removeMeaning,
      ),
    );
  const ids = [[texts.clientId, clientId] as const, ...(title === name ? [] : [[texts.commandName, name] as const])];
  const rows = renderRows(ids.map(([label, value]) => [label, html`<code>${value}</code>`]));
  const id = html`<dl class="facts">!${rows}</dl>`;
  if (isWaiting) return id;
  return html`<section class="stack manage" aria-labelledby="manage"><h2 id="manage">${texts.manage}</h2>
!${declared ? html`<p class="quiet">${texts.declared}</p>` : ''}
!${daily.length === 0 ? '' : html`<div class="actions">!${daily}</div>`}
!${declared || credentialsDamaged ? '' : renderRenaming(all, session, appliancePath(name), title, texts.renameMeaning)}
<details id="more"><summary>${texts.more}</summary>
<div class="actions">!${rare}</div>
!${declared ? '' : renderOtherPermissions(all, connectionChoice.otherPermissionsHere)}
!${id}</details>
!${ending.length === 0 ? '' : html`<div class="actions ending">!${ending}</div>`}</section>`;
}
