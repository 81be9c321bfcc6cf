import { html } from 'ghtml';
import type { PairingView } from '../../core/pairings/pairing-desk.ts';
import { appliancePath } from '../appliance/appliance-path.ts';
import { backTo, type InstallerPage } from '../installer-page.ts';
import type { SignedIn } from '../sign-in/guard.ts';
import { isUnderWay, pairingParts, RELOAD } from './pairing-parts.ts';
import { roundPath } from './round-page.ts';

/** One pairing, from the link to its end. @param now the hub's wall clock, in ms since 1970 */
export function pairingPage(asked: SignedIn, view: PairingView, now: number): InstallerPage {
  const { texts } = asked.frame;
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

function onward({ frame: { texts } }: SignedIn, { round }: PairingView): string {
  if (round !== null && (round.current !== null || round.next !== null)) {
    return html`<p><a class="button primary" id="go-on" href="${roundPath(round.id)}">${texts.round.goOn}</a></p>`;
  }
  return html`<p><a class="button" id="overview" href="/">${texts.pairing.toOverview}</a></p>`;
}
