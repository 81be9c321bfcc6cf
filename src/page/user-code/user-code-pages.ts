import { html } from 'ghtml';
import type { FoundDeviceFlow } from '../../core/lan-service.ts';
import { USER_CODE_FORMAT } from '../../core/letter-code.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import { loginFailureText } from '../callback/pairing-messages.ts';
import type { MessagePage, PublicPage } from '../document.ts';
import type { Texts } from '../texts/en.ts';

/** Characters of a code that the field repeats. */
const MAX_SHOWN_CODE_LENGTH = 20;

/** The code in the form: none was typed yet, it was not checked, or no appliance has it. */
type EnteredCode = { readonly kind: 'none' } | { readonly kind: 'unchecked' | 'wrong'; readonly code: string };

/** The form that takes a user code. */
export function userCodePage(typed: EnteredCode, { code: texts }: Texts): PublicPage {
  const intro =
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
    body: html`!${intro}
<form method="get" action="/pair">
<label for="user_code">${texts.label}</label>
<input id="user_code" name="user_code" value="${value}" required autofocus
 inputmode="text" autocapitalize="characters" autocomplete="off" autocorrect="off" spellcheck="false" maxlength="32" !${state}>
<button>${texts.continueButton}</button>
</form>`,
  };
}

/**
 * Names the appliance, the login if that is not its own, and its permissions, and shows the code again, to compare it with the appliance's screen. A
 * person who was sent a link to somebody else's appliance can notice it here (RFC 8628, 3.3.1 and 5.4).
 */
export function userCodeConfirmationPage(found: FoundDeviceFlow, texts: Texts): PublicPage {
  const { pairing, appliance, title, own } = found;
  const { code } = texts;
  const userCode = pairing.device?.userCode ?? '';
  const lastFailure = loginFailureText(pairing, texts);
  const problem = lastFailure === null ? '' : html`<p class="problem">${lastFailure} ${code.logInAgain}</p>`;
  return {
    heading: own ? code.confirm(appliance.title) : code.confirmLogin(appliance.title, title),
    severity: null,
    hasForm: true,
    body: html`!${problem}
<p>!${scopeSentence(pairing.scope, code)}</p>
<p>${code.compare}</p>
<p class="code">${userCode}</p>
<p class="quiet">${code.notYours}</p>
!${renderContinueForm(userCode, code.continueButton)}
<p class="quiet">${code.loginNext}</p>`,
  };
}

/**
 * The page for an appliance whose connection is connected already: somebody with the setup code decides whether the
 * appliance may use it. For an appliance's own connection, a login at the portal is possible too.
 */
export function approvalNeededPage(found: FoundDeviceFlow, { code }: Texts): PublicPage {
  const userCode = found.pairing.device?.userCode ?? '';
  const login = found.own ? renderContinueForm(userCode, code.loginInstead) : '';
  return {
    heading: approvalHeading(found, code),
    severity: null,
    hasForm: true,
    body: html`<p>${code.compare}</p>
<p class="code">${userCode}</p>
<p class="quiet">${code.notYours}</p>
<p>${code.signInToDecide}</p>
<form method="get" action="/pair/approve"><input type="hidden" name="user_code" value="${userCode}">
<button>${code.signIn}</button></form>
!${login}`,
  };
}

/** The question as a sentence. */
export function approvalHeading(found: FoundDeviceFlow, code: Texts['code']): string {
  const { appliance, title, own } = found;
  return own ? code.mayUseOwn(appliance.title) : code.mayUse(appliance.title, title);
}

/** Whether this is the current user code of a pairing's device flow, in any spelling. */
export function hasCurrentCode({ device }: Pairing, userCode: string): boolean {
  return device !== null && device.userCode === USER_CODE_FORMAT.parse(userCode);
}

/** The page if the portal is unreachable. */
export function portalUnreachablePage(userCode: string, { code: texts, batch }: Texts): PublicPage {
  return {
    heading: batch.unreachable,
    severity: 'bad',
    hasForm: true,
    body: html`<p>${texts.unreachableText}</p>
!${renderContinueForm(userCode, texts.tryAgain)}`,
  };
}

/** The message for a code that the appliance has replaced. */
export function codeReplacedMessage(appliance: string, { code: texts }: Texts): MessagePage {
  return {
    severity: 'waiting',
    heading: texts.codeReplaced(appliance),
    text: texts.codeReplacedText,
    link: { href: '/pair', text: texts.typeNewCode },
  };
}

/** The message after too many unknown codes. @param seconds until the hub checks a code again */
export function tooManyAttemptsMessage(seconds: number, { code: texts }: Texts): MessagePage {
  return {
    severity: 'waiting',
    heading: texts.tooManyAttempts,
    text: texts.tooManyAttemptsText(seconds),
    link: { href: '/pair', text: texts.typeCode },
  };
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
