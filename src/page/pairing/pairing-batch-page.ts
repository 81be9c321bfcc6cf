import { html } from 'ghtml';
import type { PairedConnection } from '../../core/lan-service.ts';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { countLogins, type PairingBatch, type SkippedConnection } from '../../core/pairings/pairing-batch.ts';
import { icon } from '../elements.ts';
import { backLink, csrfForm, type InstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { connectionPath, pairingBatchPath, pairingPath } from '../paths.ts';
import { renderPairing, renderStatus, renderUsers } from './pairing-page.ts';

/** Items of each list: with hundreds of appliances, the page is loaded hundreds of times during a batch. */
const MAX_SHOWN_ITEMS = 60;

/**
 * The page of a pairing batch: the appliance that is being connected, those that are connected, and the others.
 * @param current the pairing in progress
 * @param now the hub's wall clock, in ms since 1970
 */
export function pairingBatchPage(
  req: AuthenticatedRequest,
  batch: PairingBatch,
  current: (PairingView & PairedConnection) | null,
  now: number,
): InstallerPage {
  const { batch: texts, installer } = req.context.texts;
  const { connected, skipped } = batch;
  return {
    title: texts.title,
    now,
    narrow: true,
    live: true,
    isWaiting: current !== null,
    body: html`!${backLink('/', installer.overview)}
<h1>${texts.title}</h1>
!${renderAccounts(req, batch)}
!${current === null ? renderSummary(req, batch) : renderCurrentPairing(req, batch, current, now)}
!${renderList(req, texts.connected, connected, (name) => renderItem(batch, name, 'good', ''))}
!${renderList(req, texts.notConnected, failedFirst(skipped), (appliance) =>
      renderItem(
        batch,
        appliance.name,
        'neutral',
        texts.reasons[appliance.reason],
        renderRetryForm(req, batch, appliance, current !== null),
      ),
    )}`,
  };
}

/** The accounts, if there are several: a family may intend that, or a stranger has logged in. */
function renderAccounts({ context }: AuthenticatedRequest, batch: PairingBatch): string {
  const { differentAccounts } = batch;
  if (differentAccounts.length === 0) return '';
  const { differentAccounts: heading } = context.texts.batch;
  const items = differentAccounts
    .slice(0, MAX_SHOWN_ITEMS)
    .map(({ connection, account }) => html`<li>${titleIn(batch, connection)}: ${account}</li>`);
  return html`<section class="stack" id="accounts"><p class="problem" role="alert">${heading}</p><ul>!${items}</ul></section>`;
}

function renderCurrentPairing(
  req: AuthenticatedRequest,
  batch: PairingBatch,
  view: PairingView & PairedConnection,
  now: number,
) {
  const { id, next } = batch;
  const { done, all } = countLogins(batch);
  const { batch: texts } = req.context.texts;
  const skip =
    next === null
      ? ''
      : html`<div class="actions">!${csrfForm(
          req.session,
          `${pairingBatchPath(id)}/next`,
          html`<input type="hidden" name="skip" value="${view.id}"><button id="skip">${texts.skip(view.title)}</button>`,
        )}</div>`;
  return html`<p class="quiet">${texts.progress(done, all)}</p>
<section class="card" id="pairing"><h2>${view.title}</h2>
!${renderUsers(req.context.texts, view)}
!${renderPairing(req, view, now)}
!${skip}</section>`;
}

function renderSummary(req: AuthenticatedRequest, batch: PairingBatch): string {
  const { id, connected, skipped, next } = batch;
  const { batch: texts, pairing } = req.context.texts;
  const { done, all } = countLogins(batch);
  if (connected.length + skipped.length === 0)
    return html`!${renderStatus('neutral', texts.noAppliances)}<p>${texts.noAppliancesText}</p>`;
  if (skipped.length === 0)
    return html`!${renderStatus('good', texts.allConnected(all || connected.length))}<p>${pairing.connectedText}</p>`;
  const continueForm =
    next === null
      ? skipped.some(({ reason }) => reason !== 'waiting_for_approval') &&
        csrfForm(req.session, '/pair-all', html`<button class="primary" id="others">${texts.retryOthers}</button>`)
      : csrfForm(
          req.session,
          `${pairingBatchPath(id)}/next`,
          html`<button class="primary" id="next">${texts.next(titleIn(batch, next))}</button>`,
        );
  return html`!${renderStatus('warn', texts.someConnected(done, all))}!${continueForm || ''}`;
}

function renderRetryForm(
  req: AuthenticatedRequest,
  batch: PairingBatch,
  { name, pairing, reason }: SkippedConnection,
  isPairing: boolean,
): string {
  if (isPairing || pairing === null || reason === 'not_begun') return '';
  return csrfForm(
    req.session,
    `${pairingPath(pairing)}/fresh`,
    html`<button id="again-${name}">${req.context.texts.batch.retry(titleIn(batch, name))}</button>`,
  );
}

/** Failed appliances, which a person can try again, before those that were not started. */
function failedFirst(skipped: readonly SkippedConnection[]): readonly SkippedConnection[] {
  return skipped.toSorted((a, b) => Number(a.reason === 'not_begun') - Number(b.reason === 'not_begun'));
}

function renderList<Item>(
  { context }: AuthenticatedRequest,
  heading: string,
  all: readonly Item[],
  renderOne: (item: Item) => string,
): string {
  if (all.length === 0) return '';
  const hiddenCount = all.length - MAX_SHOWN_ITEMS;
  const more = hiddenCount > 0 ? html`<p class="quiet">${context.texts.batch.more(hiddenCount)}</p>` : '';
  return html`<section class="stack"><h2>${heading}</h2><ul class="history">!${all.slice(0, MAX_SHOWN_ITEMS).map(renderOne)}</ul>!${more}</section>`;
}

function renderItem(batch: PairingBatch, name: string, severity: 'good' | 'neutral', text: string, below = ''): string {
  const reason = text === '' ? '' : html`<p class="quiet">${text}</p>`;
  const link = html`<p class="state">!${icon(severity)}<a class="back" href="${connectionPath(name)}">${titleIn(batch, name)}</a></p>`;
  return html`<li><div class="stack">!${link}!${reason}!${below}</div></li>`;
}

/** What people call a connection. */
function titleIn({ titles }: PairingBatch, connection: string): string {
  return titles[connection] ?? connection;
}
