import { html } from 'ghtml';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { urlReach } from '../../system/addresses.ts';
import { credentialsAdvice, loginFailureText } from '../callback/pairing-messages.ts';
import { type DisplaySeverity, icon, qrSvg, timeElement } from '../elements.ts';
import { backLink, csrfForm, type InstallerPage } from '../installer-page.ts';
import { appliancePath, pairingBatchPath, pairingPath } from '../paths.ts';
import type { AuthenticatedRequest } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';

/** One pairing, from the link to its end. @param now the hub's wall clock, in ms since 1970 */
export function pairingPage(asked: AuthenticatedRequest, view: PairingView, now: number): InstallerPage {
  const { texts } = asked.context;
  const { appliance, batch: round } = view;
  const title = texts.pairing.title(appliance);
  return {
    title,
    now,
    narrow: true,
    live: true,
    ...(isOpen(view) && { reloadAfter: RELOAD_SECONDS }),
    body: html`!${round === null ? backLink(appliancePath(appliance), appliance) : backLink(pairingBatchPath(round.id), texts.round.title)}
<h1>${title}</h1>
<section class="card" id="pairing">!${renderPairing(asked, view, now)}</section>
!${isOpen(view) ? '' : renderContinueLink(asked, view)}`,
  };
}

function renderContinueLink({ context: { texts } }: AuthenticatedRequest, { batch: round }: PairingView): string {
  if (round !== null && (round.current !== null || round.next !== null)) {
    return html`<p><a class="button primary" id="go-on" href="${pairingBatchPath(round.id)}">${texts.round.continueWithOthers}</a></p>`;
  }
  return html`<p><a class="button" id="overview" href="/">${texts.pairing.toOverview}</a></p>`;
}

/** Seconds after which a page is looked at again where scripts are off. */
export const RELOAD_SECONDS = 5;

/**
 * How a pairing stands, in words, and what to do.
 * @param now the hub's wall clock, in ms since 1970
 * @returns HTML
 */
export function renderPairing(asked: AuthenticatedRequest, view: PairingView, now: number): string {
  const { pairing: texts } = asked.context.texts;
  const { status: report, appliance } = view;
  const cancel = view.batch === null ? texts.cancel : asked.context.texts.round.stop;
  switch (report.event) {
    case 'connecting':
      return html`!${renderStatus('waiting', texts.connecting)}
<p>${report.problem === null ? texts.connectingText : texts.portalUnreachable}</p>
<p class="quiet">${texts.updatesItself}</p>
<div class="actions">!${renderActionForm(asked, view, 'cancel', cancel)}</div>`;
    case 'waiting': {
      const end = now + 1000 * report.expiresIn;
      return html`!${renderLoginFailure(asked.context.texts, view)}!${renderUnconfirmedLogins(asked, view)}!${renderStatus('waiting', texts.waiting)}
<a class="button primary" id="login" href="${report.authorizeUrl}" rel="noreferrer">${texts.logIn}</a>
!${renderQrCode(texts, report.authorizeUrl)}
<p class="quiet">${texts.linkExpires} !${timeElement(asked.context.texts, end, now)}. ${texts.updatesItself}</p>
<div class="actions">!${renderActionForm(asked, view, 'fresh', texts.newLink)}!${renderActionForm(asked, view, 'cancel', cancel)}</div>`;
    }
    case 'exchanging':
      return html`!${renderStatus('waiting', texts.exchanging)}<p>${texts.exchangingText}</p>`;
    case 'paired':
      return html`!${renderStatus('good', texts.connected(appliance))}<p>${texts.connectedText}</p>`;
    case 'failed':
      return html`!${view.newestPairing === null ? renderStatus('bad', texts.failed(appliance)) : renderStatus('neutral', texts.superseded)}
<p>${[asked.context.texts.result.reasons[report.reason], ...nextSteps(report.reason, view, asked.context.texts)].join(' ')}</p>
!${view.newestPairing === null ? renderActionForm(asked, view, 'fresh', texts.newLink, true) : renderNewerLink(view.newestPairing, texts.showNewer)}`;
  }
}

/** Whether something will happen to it without anybody's doing at this page. */
function isOpen({ status: report }: PairingView): boolean {
  return report.event !== 'paired' && report.event !== 'failed';
}

/** @returns HTML */
export function renderStatus(severity: DisplaySeverity, text: string): string {
  return html`<p class="state ${severity}" role="status" id="state">!${icon(severity)}<span>${text}</span></p>`;
}

/** The link for another phone, where a QR code has room for it. @returns HTML */
function renderQrCode({ scan, qr }: Texts['pairing'], link: string): string {
  const code = qrSvg(link, qr);
  return code === null ? '' : html`<p>${scan[urlReach(link)]}</p>!${code}`;
}

function renderActionForm(
  asked: AuthenticatedRequest,
  { id }: PairingView,
  what: string,
  text: string,
  isMain = false,
): string {
  return csrfForm(
    asked.session,
    `${pairingPath(id)}/${what}`,
    html`<button id="${what}" class="${isMain ? 'primary' : ''}">${text}</button>`,
  );
}

function renderNewerLink(id: string, text: string): string {
  return html`<a class="button primary" id="newer" href="${pairingPath(id)}">${text}</a>`;
}

function renderLoginFailure(texts: Texts, view: PairingView): string {
  const what = loginFailureText(view, texts);
  return what === null ? '' : html`<p class="problem" role="alert">${what}</p>`;
}

function renderUnconfirmedLogins(asked: AuthenticatedRequest, view: PairingView): string {
  const { pairing: texts } = asked.context.texts;
  const each = view.unconfirmed.map(({ id, address }) => {
    const login = html`<input type="hidden" name="login" value="${id}">`;
    const form = csrfForm(
      asked.session,
      `${pairingPath(view.id)}/confirm`,
      html`!${login}<button>${texts.confirm}</button>`,
    );
    return html`<p class="problem" role="alert">${texts.unconfirmed(address)}</p><p>${texts.unconfirmedText}</p>!${form}`;
  });
  return each.join('');
}

function nextSteps(
  reason: PairingFailureReason,
  { newestPairing: newer, credentialLocation }: PairingView,
  texts: Texts,
): string[] {
  const { nextSteps: next } = texts.pairing;
  if (newer !== null) return [next.newer];
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
