import { html } from 'ghtml';
import type { PairedConnection } from '../../core/lan-service.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import { credentialsAdvice, credentialsForm, loginFailureText } from '../callback/pairing-messages.ts';
import { joinTitles, pagePathOf, sentenceAbout } from '../connection-names.ts';
import { type DisplaySeverity, icon, timeElement } from '../elements.ts';
import { backLink, csrfForm, type InstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { pairingBatchPath, pairingPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';
import { renderLoginLink } from './login-link.ts';

/**
 * The page of one pairing.
 * @param now the hub's wall clock, in ms since 1970
 */
export function pairingPage(
  req: AuthenticatedRequest,
  view: PairingView & PairedConnection,
  now: number,
): InstallerPage {
  const { texts } = req.context;
  const { title: connection, batch } = view;
  const isOwn = view.own === true;
  const title = isOwn ? texts.pairing.title(connection) : texts.pairing.loginTitle(connection);
  const back = isOwn ? connection : texts.connection.title(connection);
  return {
    title,
    now,
    narrow: true,
    live: true,
    isWaiting: isOpen(view),
    body: html`!${batch === null ? backLink(pagePathOf(view), back) : backLink(pairingBatchPath(batch.id), texts.batch.title)}
<h1>${title}</h1>
!${renderUsers(texts, view)}
<section class="card" id="pairing">!${renderPairing(req, view, now)}</section>
!${isOpen(view) ? '' : renderContinueLink(req, view)}`,
  };
}

/** The appliances that use a shared connection. @returns HTML */
export function renderUsers(texts: Texts, paired: PairedConnection): string {
  if (paired.own || paired.users.length === 0) return '';
  return html`<p class="quiet">${texts.connection.usedBy} ${joinTitles(paired.users, texts)}</p>`;
}

function renderContinueLink({ context: { texts } }: AuthenticatedRequest, { batch }: PairingView): string {
  if (batch !== null && (batch.current !== null || batch.next !== null)) {
    return html`<p><a class="button primary" id="go-on" href="${pairingBatchPath(batch.id)}">${texts.batch.continueWithOthers}</a></p>`;
  }
  return html`<p><a class="button" id="overview" href="/">${texts.appliance.backToOverview}</a></p>`;
}

/**
 * The state of a pairing in words, and what to do.
 * @param now the hub's wall clock, in ms since 1970
 * @returns HTML
 */
export function renderPairing(req: AuthenticatedRequest, view: PairingView & PairedConnection, now: number): string {
  const { pairing: texts, result } = req.context.texts;
  const { status } = view;
  const cancel = view.batch === null ? texts.cancel : req.context.texts.batch.stop;
  switch (status.event) {
    case 'connecting':
      return html`!${renderStatus('waiting', texts.connecting)}
<p>${status.problem === null ? texts.connectingText : texts.portalUnreachable}</p>
<p class="quiet">${texts.updatesItself}</p>
<div class="actions">!${renderActionForm(req, view, 'cancel', cancel)}</div>`;
    case 'waiting': {
      const expiresAt = now + 1000 * status.expiresIn;
      return html`!${renderLoginFailure(req.context.texts, view)}!${renderUnconfirmedLogins(req, view)}!${renderStatus('waiting', texts.waiting)}
!${renderLoginLink(req, view, status)}
<p class="quiet">${status.isRenewed ? texts.newCode : texts.linkExpires} !${timeElement(req.context.texts, expiresAt, now)}. ${texts.updatesItself}</p>
<div class="actions">!${renderActionForm(req, view, 'fresh', texts.newLink)}!${renderActionForm(req, view, 'cancel', cancel)}</div>`;
    }
    case 'exchanging':
      return html`!${renderStatus('waiting', texts.exchanging)}<p>${texts.exchangingText}</p>`;
    case 'paired':
      return html`!${renderStatus('good', sentenceAbout(view, req.context.texts, result.connected))}<p>${texts.connectedText}</p>`;
    case 'failed':
      return html`!${view.newestPairing === null ? renderStatus('bad', sentenceAbout(view, req.context.texts, result.notConnected)) : renderStatus('neutral', texts.superseded)}
<p>${[req.context.texts.result.reasons[status.reason], ...nextSteps(status.reason, view, req.context.texts)].join(' ')}</p>
!${renderCredentialsLink(req.context.texts, status.reason, view)}
!${view.newestPairing === null ? renderActionForm(req, view, 'fresh', texts.newLink, true) : renderNewerLink(view.newestPairing, texts.showNewer)}`;
  }
}

/** Whether the pairing has not ended, so that the page may still change. */
function isOpen({ status }: PairingView): boolean {
  return status.event !== 'paired' && status.event !== 'failed';
}

/** A state as icon and text, which screen readers announce. @returns HTML */
export function renderStatus(severity: DisplaySeverity, text: string): string {
  return html`<p class="state ${severity}" role="status" id="state">!${icon(severity)}<span>${text}</span></p>`;
}

function renderActionForm(
  req: AuthenticatedRequest,
  { id }: PairingView,
  action: string,
  text: string,
  isPrimary = false,
): string {
  return csrfForm(
    req.session,
    `${pairingPath(id)}/${action}`,
    html`<button id="${action}" class="${isPrimary ? 'primary' : ''}">${text}</button>`,
  );
}

function renderNewerLink(id: string, text: string): string {
  return html`<a class="button primary" id="newer" href="${pairingPath(id)}">${text}</a>`;
}

function renderLoginFailure(texts: Texts, view: PairingView): string {
  const text = loginFailureText(view, texts);
  return text === null ? '' : html`<p class="problem" role="alert">${text}</p>`;
}

function renderUnconfirmedLogins(req: AuthenticatedRequest, view: PairingView): string {
  const { pairing: texts } = req.context.texts;
  const items = view.unconfirmed.map(({ id, address }) => {
    const field = html`<input type="hidden" name="login" value="${id}">`;
    const form = csrfForm(
      req.session,
      `${pairingPath(view.id)}/confirm`,
      html`!${field}<button>${texts.confirm}</button>`,
    );
    return html`<p class="problem" role="alert">${texts.unconfirmed(address)}</p><p>${texts.unconfirmedText}</p>!${form}`;
  });
  return items.join('');
}

function renderCredentialsLink(
  { portal }: Texts,
  reason: PairingFailureReason,
  { newestPairing, credentialLocation }: PairingView,
): string {
  const isRejected = publicReason(reason) === 'misconfigured';
  const form = isRejected && newestPairing === null ? credentialsForm(credentialLocation) : null;
  return form === null ? '' : html`<a class="button primary" id="enter-again" href="${form}">${portal.again}</a>`;
}

function nextSteps(
  reason: PairingFailureReason,
  { newestPairing, credentialLocation }: PairingView,
  texts: Texts,
): string[] {
  const { nextSteps: next } = texts.pairing;
  if (newestPairing !== null) return [next.newer];
  switch (reason) {
    case 'refused_by_user':
      return [next.refused];
    case 'foreign_origin':
      return [next.configuration];
    case 'portal_rejected':
      return [next.portal];
    default:
      return [...credentialsAdvice(reason, credentialLocation, texts), next.fresh];
  }
}
