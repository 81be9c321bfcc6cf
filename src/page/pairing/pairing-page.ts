import { html } from 'ghtml';
import type { FailureReason } from '../../core/pairings/pairing.ts';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { reachOf } from '../../system/addresses.ts';
import { correction, setbackText } from '../callback/pairing-notices.ts';
import { icon, qrSvg, type Severity, timeElement } from '../elements.ts';
import { backTo, type InstallerPage, sameOriginForm } from '../installer-page.ts';
import { appliancePath, pairingPath, roundPath } from '../paths.ts';
import type { SignedIn } from '../sign-in/guard.ts';
import type { Texts } from '../texts/en.ts';

/** One pairing, from the link to its end. @param now the hub's wall clock, in ms since 1970 */
export function pairingPage(asked: SignedIn, view: PairingView, now: number): InstallerPage {
  const { texts } = asked.context;
  const { appliance, round } = view;
  const title = texts.pairing.title(appliance);
  return {
    title,
    now,
    narrow: true,
    live: true,
    ...(isUnderWay(view) && { reloadAfter: RELOAD }),
    body: html`!${round === null ? backTo(appliancePath(appliance), appliance) : backTo(roundPath(round.id), texts.round.title)}
<h1>${title}</h1>
<section class="card" id="pairing">!${pairingParts(asked, view, now)}</section>
!${isUnderWay(view) ? '' : onward(asked, view)}`,
  };
}

function onward({ context: { texts } }: SignedIn, { round }: PairingView): string {
  if (round !== null && (round.current !== null || round.next !== null)) {
    return html`<p><a class="button primary" id="go-on" href="${roundPath(round.id)}">${texts.round.goOn}</a></p>`;
  }
  return html`<p><a class="button" id="overview" href="/">${texts.pairing.toOverview}</a></p>`;
}

/** Seconds after which a page is looked at again where scripts are off. */
export const RELOAD = 5;

/**
 * How a pairing stands, in words, and what to do.
 * @param now the hub's wall clock, in ms since 1970
 * @returns HTML
 */
export function pairingParts(asked: SignedIn, view: PairingView, now: number): string {
  const { pairing: texts } = asked.context.texts;
  const { report, appliance } = view;
  const cancel = view.round === null ? texts.cancel : asked.context.texts.round.stop;
  switch (report.event) {
    case 'connecting':
      return html`!${state('waiting', texts.connecting)}
<p>${report.problem === null ? texts.connectingText : texts.outOfReach}</p>
<p class="quiet">${texts.follows}</p>
<div class="actions">!${button(asked, view, 'cancel', cancel)}</div>`;
    case 'waiting': {
      const end = now + 1000 * report.expiresIn;
      return html`!${setback(asked.context.texts, view)}!${unconfirmed(asked, view)}!${state('waiting', texts.waiting)}
<a class="button primary" id="login" href="${report.authorizeUrl}" rel="noreferrer">${texts.logIn}</a>
!${scanned(texts, report.authorizeUrl)}
<p class="quiet">${texts.ends} !${timeElement(asked.context.texts, end, now)}. ${texts.follows}</p>
<div class="actions">!${button(asked, view, 'fresh', texts.fresh)}!${button(asked, view, 'cancel', cancel)}</div>`;
    }
    case 'exchanging':
      return html`!${state('waiting', texts.exchanging)}<p>${texts.exchangingText}</p>`;
    case 'paired':
      return html`!${state('good', texts.connected(appliance))}<p>${texts.connectedText}</p>`;
    case 'failed':
      return html`!${view.newer === null ? state('bad', texts.failed(appliance)) : state('neutral', texts.superseded)}
<p>${[asked.context.texts.result.reasons[report.reason], ...nextSteps(report.reason, view, asked.context.texts)].join(' ')}</p>
!${view.newer === null ? button(asked, view, 'fresh', texts.fresh, true) : newer(view.newer, texts.showNewer)}`;
  }
}

/** Whether something will happen to it without anybody's doing at this page. */
function isUnderWay({ report }: PairingView): boolean {
  return report.event !== 'paired' && report.event !== 'failed';
}

/** @returns HTML */
export function state(severity: Severity, text: string): string {
  return html`<p class="state ${severity}" role="status" id="state">!${icon(severity)}<span>${text}</span></p>`;
}

/** The link for another phone, where a QR code has room for it. @returns HTML */
function scanned({ scan, qr }: Texts['pairing'], link: string): string {
  const code = qrSvg(link, qr);
  return code === null ? '' : html`<p>${scan[reachOf(link)]}</p>!${code}`;
}

function button(asked: SignedIn, { id }: PairingView, what: string, text: string, isMain = false): string {
  return sameOriginForm(
    asked.session,
    `${pairingPath(id)}/${what}`,
    html`<button id="${what}" class="${isMain ? 'primary' : ''}">${text}</button>`,
  );
}

function newer(id: string, text: string): string {
  return html`<a class="button primary" id="newer" href="${pairingPath(id)}">${text}</a>`;
}

function setback(texts: Texts, view: PairingView): string {
  const what = setbackText(view, texts);
  return what === null ? '' : html`<p class="problem" role="alert">${what}</p>`;
}

function unconfirmed(asked: SignedIn, view: PairingView): string {
  const { pairing: texts } = asked.context.texts;
  const each = view.unconfirmed.map(({ id, address }) => {
    const login = html`<input type="hidden" name="login" value="${id}">`;
    const form = sameOriginForm(
      asked.session,
      `${pairingPath(view.id)}/confirm`,
      html`!${login}<button>${texts.confirm}</button>`,
    );
    return html`<p class="problem" role="alert">${texts.unconfirmed(address)}</p><p>${texts.unconfirmedText}</p>!${form}`;
  });
  return each.join('');
}

function nextSteps(reason: FailureReason, { newer, credentialLocation }: PairingView, texts: Texts): string[] {
  const { next } = texts.pairing;
  if (newer !== null) return [next.newer];
  switch (reason) {
    case 'refused_by_user':
      return [next.refused];
    case 'foreign_origin':
      return [next.configuration];
    case 'portal_rejected':
      return [next.portal];
    default:
      return [...correction(reason, credentialLocation, texts), next.fresh];
  }
}
