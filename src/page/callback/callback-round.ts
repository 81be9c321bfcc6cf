import { html } from 'ghtml';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { Round } from '../../core/pairings/round.ts';
import type { Page } from '../document.ts';
import type { Texts } from '../texts/en.ts';

/**
 * The last page of a login that was part of a round: how that one ended, and one tap to the next appliance.
 * @param nonce of the pairing
 * @param home the address of the hub's page
 * @returns null while the pairing has not ended: then it is told of like any other
 */
export function roundResultPage(
  { pairing, appliance, round }: { pairing: Pairing; appliance: string; round: Round },
  nonce: string,
  home: string,
  { result, round: texts }: Texts,
): Page | null {
  const { step } = pairing;
  if (step.kind !== 'ended') return null;
  const isPaired = step.result.kind === 'paired' || round.connected.includes(appliance);
  const current = round.current?.appliance ?? round.next;
  const buttons = [
    current !== null && current !== appliance ? goOn(nonce, false, texts.next(current)) : '',
    isPaired ? '' : goOn(nonce, true, texts.again(appliance)),
  ].join('\n');
  const toHub = html`<p><a href="${home}">${texts.toHub}</a></p>`;
  if (step.result.kind === 'failed' && !isPaired) {
    return {
      heading: result.notConnected(appliance),
      severity: 'bad',
      form: true,
      body: html`<p>${result.reasons[step.result.reason]}</p>!${buttons}!${toHub}`,
    };
  }
  if (current !== null) {
    return { heading: result.connected(appliance), severity: 'good', form: true, body: html`!${buttons}!${toHub}` };
  }
  const all = round.connected.length + round.leftOut.length;
  if (round.leftOut.length === 0) {
    return { heading: texts.done(all), severity: 'good', body: html`<p>${texts.closing}</p>!${toHub}` };
  }
  const left = round.leftOut.map(({ name, reason }) => html`<p><b>${name}</b>: ${texts.reasons[reason]}</p>`);
  return { heading: texts.notAll(round.connected.length, all), severity: 'neutral', body: html`!${left}!${toHub}` };
}

/** The portal gave no link for the next appliance in time. */
export function nextUnreachablePage(appliance: string, nonce: string, { round: texts, code }: Texts): Page {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    form: true,
    body: html`<p>${texts.unreachableText(appliance)}</p>!${goOn(nonce, false, code.tryAgain)}`,
  };
}

function goOn(nonce: string, isAgain: boolean, text: string): string {
  const again = isAgain ? html`<input type="hidden" name="again" value="1">` : '';
  return html`<form method="post" action="/callback/${encodeURIComponent(nonce)}/next">!${again}<button>${text}</button></form>`;
}
