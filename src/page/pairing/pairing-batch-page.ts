import { html } from 'ghtml';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import type { PairingBatch, SkippedAppliance } from '../../core/pairings/pairing-batch.ts';
import { icon } from '../elements.ts';
import { backLink, csrfForm, type InstallerPage } from '../installer-page.ts';
import { appliancePath, pairingBatchPath, pairingPath } from '../paths.ts';
import type { AuthenticatedRequest } from '../sign-in/authenticated-routes.ts';
import { RELOAD_SECONDS, renderPairing, renderStatus } from './pairing-page.ts';

/** Lines of each list: with hundreds of appliances the page is read again hundreds of times. */
const MAX_SHOWN_ITEMS = 60;

/**
 * All appliances, one after the other: the one that is being connected, those that are, and those that are not.
 * @param current the pairing that is under way
 * @param now the hub's wall clock, in ms since 1970
 */
export function pairingBatchPage(
  asked: AuthenticatedRequest,
  round: PairingBatch,
  current: PairingView | null,
  now: number,
): InstallerPage {
  const { round: texts, installer } = asked.context.texts;
  const { connected, skipped } = round;
  const all = connected.length + skipped.length + (current === null ? 0 : 1);
  return {
    title: texts.title,
    now,
    narrow: true,
    live: true,
    ...(current !== null && { reloadAfter: RELOAD_SECONDS }),
    body: html`!${backLink('/', installer.overview)}
<h1>${texts.title}</h1>
!${renderAccounts(asked, round)}
!${current === null ? renderSummary(asked, round, all) : renderCurrentPairing(asked, round, current, all, now)}
!${renderList(asked, texts.connected, connected, (name) => renderItem(name, 'good', ''))}
!${renderList(asked, texts.notConnected, failedFirst(skipped), (left) =>
      renderItem(left.name, 'neutral', texts.reasons[left.reason], renderRetryForm(asked, left, current !== null)),
    )}`,
  };
}

/** A family may have two accounts; or somebody else has logged in. */
function renderAccounts({ context }: AuthenticatedRequest, { differentAccounts }: PairingBatch): string {
  if (differentAccounts.length === 0) return '';
  const { differentAccounts: accounts } = context.texts.round;
  const lines = differentAccounts
    .slice(0, MAX_SHOWN_ITEMS)
    .map((one) => html`<li>${one.appliance}: ${one.account}</li>`);
  return html`<section class="stack" id="accounts"><p class="problem" role="alert">${accounts}</p><ul>!${lines}</ul></section>`;
}

function renderCurrentPairing(
  asked: AuthenticatedRequest,
  { id, connected, next }: PairingBatch,
  view: PairingView,
  all: number,
  now: number,
) {
  const { round: texts } = asked.context.texts;
  const skip =
    next === null
      ? ''
      : html`<div class="actions">!${csrfForm(
          asked.session,
          `${pairingBatchPath(id)}/next`,
          html`<input type="hidden" name="skip" value="${view.id}"><button id="skip">${texts.skip(view.appliance)}</button>`,
        )}</div>`;
  return html`<p class="quiet">${texts.progress(connected.length, all)}</p>
<section class="card" id="pairing"><h2>${view.appliance}</h2>
!${renderPairing(asked, view, now)}
!${skip}</section>`;
}

function renderSummary(
  asked: AuthenticatedRequest,
  { id, connected, skipped, next }: PairingBatch,
  all: number,
): string {
  const { round: texts } = asked.context.texts;
  if (all === 0) return html`!${renderStatus('neutral', texts.noAppliances)}<p>${texts.noAppliancesText}</p>`;
  if (skipped.length === 0) return renderStatus('good', texts.allConnected(all));
  const onward =
    next === null
      ? skipped.some(({ reason }) => reason !== 'waiting_for_approval') &&
        csrfForm(asked.session, '/pair-all', html`<button class="primary" id="others">${texts.retryOthers}</button>`)
      : csrfForm(
          asked.session,
          `${pairingBatchPath(id)}/next`,
          html`<button class="primary" id="next">${texts.next(next)}</button>`,
        );
  return html`!${renderStatus('warn', texts.someConnected(connected.length, all))}!${onward || ''}`;
}

function renderRetryForm(
  asked: AuthenticatedRequest,
  { name, pairing, reason }: SkippedAppliance,
  isBusy: boolean,
): string {
  if (isBusy || pairing === null || reason === 'not_begun') return '';
  return csrfForm(
    asked.session,
    `${pairingPath(pairing)}/fresh`,
    html`<button id="again-${name}">${asked.context.texts.round.retry(name)}</button>`,
  );
}

/** Those that came to nothing, where somebody can try again, before those whose turn has not come. */
function failedFirst(skipped: readonly SkippedAppliance[]): readonly SkippedAppliance[] {
  return skipped.toSorted((a, b) => Number(a.reason === 'not_begun') - Number(b.reason === 'not_begun'));
}

function renderList<Each>(
  { context }: AuthenticatedRequest,
  heading: string,
  all: readonly Each[],
  line: (each: Each) => string,
): string {
  if (all.length === 0) return '';
  const rest = all.length - MAX_SHOWN_ITEMS;
  const more = rest > 0 ? html`<p class="quiet">${context.texts.round.more(rest)}</p>` : '';
  return html`<section class="stack"><h2>${heading}</h2><ul class="history">!${all.slice(0, MAX_SHOWN_ITEMS).map(line)}</ul>!${more}</section>`;
}

function renderItem(name: string, severity: 'good' | 'neutral', text: string, below = ''): string {
  const why = text === '' ? '' : html`<p class="quiet">${text}</p>`;
  const link = html`<p class="state">!${icon(severity)}<a class="back" href="${appliancePath(name)}">${name}</a></p>`;
  return html`<li><div class="stack">!${link}!${why}!${below}</div></li>`;
}
