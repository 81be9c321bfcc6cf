import { html } from 'ghtml';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { setbackText } from '../callback/pairing-notices.ts';
import type { Notice, Page } from '../document.ts';
import type { Texts } from '../texts/en.ts';

/** Characters of a code that come back in the field. */
const MAX_SHOWN_LENGTH = 20;

/** What the form that takes a user code says of the one in it: none was typed yet, it was not looked at, or nobody was given it. */
type TypedCode = { readonly kind: 'none' } | { readonly kind: 'unchecked' | 'wrong'; readonly code: string };

/** The form that takes a user code. */
export function codePage(typed: TypedCode, { code: texts }: Texts): Page {
  const lead =
    typed.kind === 'wrong'
      ? html`<p class="problem" id="problem" role="alert">${texts.wrong}</p>
<p>${texts.wrongNext}</p>`
      : html`<p>${typed.kind === 'unchecked' ? texts.check : texts.ask}</p>`;
  const state = typed.kind === 'wrong' ? 'aria-invalid="true" aria-describedby="problem"' : '';
  const value = typed.kind === 'none' ? '' : typed.code.slice(0, MAX_SHOWN_LENGTH);
  return {
    heading: texts.heading,
    severity: null,
    form: true,
    body: html`!${lead}
<form method="get" action="/pair">
<label for="user_code">${texts.label}</label>
<input id="user_code" name="user_code" value="${value}" required autofocus
 inputmode="text" autocapitalize="characters" autocomplete="off" autocorrect="off" spellcheck="false" maxlength="32" !${state}>
<button>${texts.go}</button>
</form>`,
  };
}

/**
 * Names the appliance and what it asks for, and shows the code once more, to be compared with the appliance's screen:
 * whoever was sent the link of somebody else's appliance can see that here (RFC 8628, 3.3.1 and 5.4).
 */
export function confirmPage(pairing: Pairing, appliance: string, texts: Texts): Page {
  const { code } = texts;
  const userCode = pairing.device?.userCode ?? '';
  const setback = setbackText(pairing, texts);
  const before = setback === null ? '' : html`<p class="problem">${setback} ${code.again}</p>`;
  return {
    heading: code.confirm(appliance),
    severity: null,
    form: true,
    body: html`!${before}
<p>!${wanted(pairing.scope, code)}</p>
<p>${code.compare}</p>
<p class="code">${userCode}</p>
<p class="quiet">${code.notYours}</p>
!${postForm(userCode, code.go)}
<p class="quiet">${code.loginNext}</p>`,
  };
}

/** The portal could not be asked for a link. */
export function unreachablePage(userCode: string, { code: texts }: Texts): Page {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    form: true,
    body: html`<p>${texts.unreachableText}</p>
!${postForm(userCode, texts.tryAgain)}`,
  };
}

/** For a code that another has taken the place of. */
export function newerCode(appliance: string, { code: texts }: Texts): Notice {
  return {
    severity: 'waiting',
    heading: texts.newer(appliance),
    text: texts.newerText,
    link: { href: '/pair', text: texts.typeNew },
  };
}

/** No link can be asked for until another pairing has ended. */
export function tooManyOpen({ code: texts }: Texts): Notice {
  return { severity: 'waiting', heading: texts.tooManyOpen, text: texts.tooManyOpenText };
}

/** Another site's form. */
export function foreign({ code: texts }: Texts): Notice {
  return refusal(texts.foreign, texts.foreignText, texts);
}

/** What was posted is no form. */
export function notForm({ code: texts }: Texts): Notice {
  return refusal(texts.notForm, texts.notFormText, texts);
}

/** A query or form that can't be read. */
export function unreadable({ code: texts }: Texts): Notice {
  return refusal(texts.unreadable, texts.unreadableText, texts);
}

/** @param seconds until a code is looked at again */
export function tooMany(seconds: number, { code: texts }: Texts): Notice {
  return {
    severity: 'waiting',
    heading: texts.tooManyWrong,
    text: texts.tooManyWrongText(seconds),
    link: { href: '/pair', text: texts.typeCode },
  };
}

function refusal(heading: string, text: string, { typeCode }: Texts['code']): Notice {
  return { severity: 'bad', heading, text, link: { href: '/pair', text: typeCode } };
}

function wanted(scope: string | null, texts: Texts['code']): string {
  if (scope === null) return html`${texts.portalDecides}`;
  const names = scope.split(' ').map((name) => html`<b>${name}</b>`);
  const last = names.pop() ?? '';
  const all = names.length === 0 ? last : html`!${names.join(texts.comma)}${texts.and}!${last}`;
  return html`${texts.asksBefore}!${all}${texts.asksAfter}`;
}

function postForm(userCode: string, button: string): string {
  return html`<form method="post" action="/pair"><input type="hidden" name="user_code" value="${userCode}">
<button>${button}</button></form>`;
}
