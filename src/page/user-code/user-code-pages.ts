import { html } from 'ghtml';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { loginFailureText } from '../callback/pairing-messages.ts';
import type { MessagePage, PublicPage } from '../document.ts';
import type { Texts } from '../texts/en.ts';

/** Characters of a code that come back in the field. */
const MAX_SHOWN_CODE_LENGTH = 20;

/** What the form that takes a user code says of the one in it: none was typed yet, it was not looked at, or nobody was given it. */
type EnteredCode = { readonly kind: 'none' } | { readonly kind: 'unchecked' | 'wrong'; readonly code: string };

/** The form that takes a user code. */
export function userCodePage(typed: EnteredCode, { code: texts }: Texts): PublicPage {
  const lead =
    typed.kind === 'wrong'
      ? html`<p class="problem" id="problem" role="alert">${texts.unknownCode}</p>
<p>${texts.unknownCodeText}</p>`
      : html`<p>${typed.kind === 'unchecked' ? texts.checkCode : texts.enterCode}</p>`;
  const state = typed.kind === 'wrong' ? 'aria-invalid="true" aria-describedby="problem"' : '';
  const value = typed.kind === 'none' ? '' : typed.code.slice(0, MAX_SHOWN_CODE_LENGTH);
  return {
    heading: texts.heading,
    severity: null,
    hasForm: true,
    body: html`!${lead}
<form method="get" action="/pair">
<label for="user_code">${texts.label}</label>
<input id="user_code" name="user_code" value="${value}" required autofocus
 inputmode="text" autocapitalize="characters" autocomplete="off" autocorrect="off" spellcheck="false" maxlength="32" !${state}>
<button>${texts.continueButton}</button>
</form>`,
  };
}

/**
 * Names the appliance and what it asks for, and shows the code once more, to be compared with the appliance's screen:
 * whoever was sent the link of somebody else's appliance can see that here (RFC 8628, 3.3.1 and 5.4).
 */
export function userCodeConfirmationPage(pairing: Pairing, appliance: string, texts: Texts): PublicPage {
  const { code } = texts;
  const userCode = pairing.device?.userCode ?? '';
  const lastFailure = loginFailureText(pairing, texts);
  const before = lastFailure === null ? '' : html`<p class="problem">${lastFailure} ${code.logInAgain}</p>`;
  return {
    heading: code.confirm(appliance),
    severity: null,
    hasForm: true,
    body: html`!${before}
<p>!${scopeSentence(pairing.scope, code)}</p>
<p>${code.compare}</p>
<p class="code">${userCode}</p>
<p class="quiet">${code.notYours}</p>
!${renderContinueForm(userCode, code.continueButton)}
<p class="quiet">${code.loginNext}</p>`,
  };
}

/** The portal could not be asked for a link. */
export function portalUnreachablePage(userCode: string, { code: texts }: Texts): PublicPage {
  return {
    heading: texts.unreachable,
    severity: 'bad',
    hasForm: true,
    body: html`<p>${texts.unreachableText}</p>
!${renderContinueForm(userCode, texts.tryAgain)}`,
  };
}

/** For a code that another has taken the place of. */
export function codeReplacedMessage(appliance: string, { code: texts }: Texts): MessagePage {
  return {
    severity: 'waiting',
    heading: texts.codeReplaced(appliance),
    text: texts.codeReplacedText,
    link: { href: '/pair', text: texts.typeNewCode },
  };
}

/** No link can be asked for until another pairing has ended. */
export function tooManyPairingsMessage({ code: texts }: Texts): MessagePage {
  return { severity: 'waiting', heading: texts.tooManyPairings, text: texts.tooManyPairingsText };
}

/** Another site's form. */
export function crossSiteMessage({ code: texts }: Texts): MessagePage {
  return errorMessage(texts.crossSite, texts.crossSiteText, texts);
}

/** What was posted is no form. */
export function notAFormMessage({ code: texts }: Texts): MessagePage {
  return errorMessage(texts.notAForm, texts.notAFormText, texts);
}

/** A query or form that can't be read. */
export function malformedRequestMessage({ code: texts }: Texts): MessagePage {
  return errorMessage(texts.malformedRequest, texts.malformedRequestText, texts);
}

/** @param seconds until a code is looked at again */
export function tooManyAttemptsMessage(seconds: number, { code: texts }: Texts): MessagePage {
  return {
    severity: 'waiting',
    heading: texts.tooManyAttempts,
    text: texts.tooManyAttemptsText(seconds),
    link: { href: '/pair', text: texts.typeCode },
  };
}

function errorMessage(heading: string, text: string, { typeCode }: Texts['code']): MessagePage {
  return { severity: 'bad', heading, text, link: { href: '/pair', text: typeCode } };
}

function scopeSentence(scope: string | null, texts: Texts['code']): string {
  if (scope === null) return html`${texts.portalDecides}`;
  const names = scope.split(' ').map((name) => html`<b>${name}</b>`);
  const last = names.pop() ?? '';
  const all = names.length === 0 ? last : html`!${names.join(texts.comma)}${texts.and}!${last}`;
  return html`${texts.scopePrefix}!${all}${texts.scopeSuffix}`;
}

function renderContinueForm(userCode: string, button: string): string {
  return html`<form method="post" action="/pair"><input type="hidden" name="user_code" value="${userCode}">
<button>${button}</button></form>`;
}
