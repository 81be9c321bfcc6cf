import { html } from 'ghtml';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import type { LeftOut, Round } from '../../core/pairings/round.ts';
import { icon } from '../elements.ts';
import { backTo, type InstallerPage, sameOriginForm } from '../installer-page.ts';
import { appliancePath, pairingPath, roundPath } from '../paths.ts';
import type { SignedIn } from '../sign-in/guard.ts';
import { pairingParts, RELOAD, state } from './pairing-page.ts';

/** Lines of each list: with hundreds of appliances the page is read again hundreds of times. */
const MAX_SHOWN = 60;

/**
 * All appliances, one after the other: the one that is being connected, those that are, and those that are not.
 * @param current the pairing that is under way
 * @param now the hub's wall clock, in ms since 1970
 */
export function roundPage(asked: SignedIn, round: Round, current: PairingView | null, now: number): InstallerPage {
  const { round: texts, installer } = asked.context.texts;
  const { connected, leftOut } = round;
  const all = connected.length + leftOut.length + (current === null ? 0 : 1);
  return {
    title: texts.title,
    now,
    narrow: true,
    live: true,
    ...(current !== null && { reloadAfter: RELOAD }),
    body: html`!${backTo('/', installer.overview)}
<h1>${texts.title}</h1>
!${accounts(asked, round)}
!${current === null ? summary(asked, round, all) : underWay(asked, round, current, all, now)}
!${list(asked, texts.connected, connected, (name) => item(name, 'good', ''))}
!${list(asked, texts.open, triedFirst(leftOut), (left) =>
      item(left.name, 'neutral', texts.reasons[left.reason], again(asked, left, current !== null)),
    )}`,
  };
}

/** A family may have two accounts; or somebody else has logged in. */
function accounts({ context }: SignedIn, { differentAccounts }: Round): string {
  if (differentAccounts.length === 0) return '';
  const { accounts } = context.texts.round;
  const lines = differentAccounts.slice(0, MAX_SHOWN).map((one) => html`<li>${one.appliance}: ${one.account}</li>`);
  return html`<section class="stack" id="accounts"><p class="problem" role="alert">${accounts}</p><ul>!${lines}</ul></section>`;
}

function underWay(asked: SignedIn, { id, connected, next }: Round, view: PairingView, all: number, now: number) {
  const { round: texts } = asked.context.texts;
  const skip =
    next === null
      ? ''
      : html`<div class="actions">!${sameOriginForm(
          asked.session,
          `${roundPath(id)}/next`,
          html`<input type="hidden" name="skip" value="${view.id}"><button id="skip">${texts.skip(view.appliance)}</button>`,
        )}</div>`;
  return html`<p class="quiet">${texts.progress(connected.length, all)}</p>
<section class="card" id="pairing"><h2>${view.appliance}</h2>
!${pairingParts(asked, view, now)}
!${skip}</section>`;
}

function summary(asked: SignedIn, { id, connected, leftOut, next }: Round, all: number): string {
  const { round: texts } = asked.context.texts;
  if (all === 0) return html`!${state('neutral', texts.none)}<p>${texts.noneText}</p>`;
  if (leftOut.length === 0) return state('good', texts.done(all));
  const onward =
    next === null
      ? leftOut.some(({ reason }) => reason !== 'waiting_for_approval') &&
        sameOriginForm(asked.session, '/pair-all', html`<button class="primary" id="others">${texts.others}</button>`)
      : sameOriginForm(
          asked.session,
          `${roundPath(id)}/next`,
          html`<button class="primary" id="next">${texts.next(next)}</button>`,
        );
  return html`!${state('warn', texts.notAll(connected.length, all))}!${onward || ''}`;
}

function again(asked: SignedIn, { name, pairing, reason }: LeftOut, isBusy: boolean): string {
  if (isBusy || pairing === null || reason === 'not_begun') return '';
  return sameOriginForm(
    asked.session,
    `${pairingPath(pairing)}/fresh`,
    html`<button id="again-${name}">${asked.context.texts.round.again(name)}</button>`,
  );
}

/** Those that came to nothing, where somebody can try again, before those whose turn has not come. */
function triedFirst(leftOut: readonly LeftOut[]): readonly LeftOut[] {
  return leftOut.toSorted((a, b) => Number(a.reason === 'not_begun') - Number(b.reason === 'not_begun'));
}

function list<Each>(
  { context }: SignedIn,
  heading: string,
  all: readonly Each[],
  line: (each: Each) => string,
): string {
  if (all.length === 0) return '';
  const rest = all.length - MAX_SHOWN;
  const more = rest > 0 ? html`<p class="quiet">${context.texts.round.more(rest)}</p>` : '';
  return html`<section class="stack"><h2>${heading}</h2><ul class="history">!${all.slice(0, MAX_SHOWN).map(line)}</ul>!${more}</section>`;
}

function item(name: string, severity: 'good' | 'neutral', text: string, below = ''): string {
  const why = text === '' ? '' : html`<p class="quiet">${text}</p>`;
  const link = html`<p class="state">!${icon(severity)}<a class="back" href="${appliancePath(name)}">${name}</a></p>`;
  return html`<li><div class="stack">!${link}!${why}!${below}</div></li>`;
}
