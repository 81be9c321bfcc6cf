import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import { SETUP_CODE_FORMAT, typedLetters } from '../../core/letter-code.ts';
import { type PublicPage, sendMessagePage, sendPublicPage } from '../document.ts';
import { cookieValue, type FormErrorStatus } from '../http.ts';
import type { PageContext } from '../page-context.ts';
import { LABEL_PATH } from '../paths.ts';
import { isCrossSiteNavigation, refererPath, safeRedirectPath } from '../request-origin.ts';
import type { Texts } from '../texts/en.ts';

/** Characters of a wrong code that the field repeats; a code with spaces and dashes has fewer. */
const MAX_SHOWN_CODE_LENGTH = 40;
/** The command that shows the setup code. */
const SETUP_CODE_COMMAND = 'latchkey setup-code';

/** The session cookie. Browsers accept this prefix only from its own host, over TLS (RFC 6265bis, 4.1.3.2). */
export const SESSION_COOKIE = '__Host-latchkey';

/** The value of the session cookie; null if there is none. */
export function readSessionCookie(request: FastifyRequest): string | null {
  return cookieValue(request, SESSION_COOKIE);
}

/** Why the sign-in page is shown. */
type SignInReason =
  | { readonly kind: 'asked' | 'ended' | 'ended_meanwhile' | 'signed_out' | 'used_up' | 'missing' | 'locked' }
  | { readonly kind: 'wrong'; readonly typed: string };

/**
 * The page that takes the setup code. It shows only the hub's name.
 * @param next the path to open after the sign-in
 */
function signInPage(texts: Texts, next: string, reason: SignInReason): PublicPage {
  const { signIn } = texts;
  const { problem, status } = reasonTexts(texts, reason);
  const note = status === undefined ? '' : html`<p role="status">${status}</p>`;
  // The same for every name: nobody learns here which appliances there are.
  const label = next.startsWith(LABEL_PATH) ? html`<p>${signIn.labelScanned}</p>` : '';
  const message = problem === undefined ? '' : html`<p class="problem" id="problem" role="alert">${problem}</p>`;
  const invalid = problem === undefined ? '' : 'aria-invalid="true"';
  const describedBy = problem === undefined ? 'hint' : 'problem hint';
  const typed = reason.kind === 'wrong' ? reason.typed.slice(0, MAX_SHOWN_CODE_LENGTH) : '';
  return {
    heading: signIn.heading,
    severity: null,
    hasForm: true,
    body: html`!${label}!${note}
<form method="post" action="/sign-in">
<input type="hidden" name="next" value="${next}">
<label for="code">${signIn.label}</label>
<p class="quiet" id="hint">${signIn.hint}</p>
!${message}
<input id="code" name="code" value="${typed}" required autofocus inputmode="text" autocapitalize="characters"
 autocomplete="off" autocorrect="off" spellcheck="false" maxlength="64" enterkeyhint="go" aria-describedby="${describedBy}" !${invalid}>
<button>${signIn.button}</button>
</form>
<p class="quiet">${signIn.whereToFindCode}</p>
<p><code>${SETUP_CODE_COMMAND}</code></p>`,
  };
}

/** Whether the browser may have a session cookie that it does not send, because it follows a link of another site. */
export function mayWithholdCookie(request: FastifyRequest): boolean {
  return readSessionCookie(request) === null && isCrossSiteNavigation(request);
}

/**
 * Redirects by a page of the hub itself. A browser that has followed a link on another site or in a mail sends the
 * session cookie (SameSite=Strict) only with this second request.
 */
export function sendSameOriginRedirect(reply: FastifyReply, context: PageContext, path: string): FastifyReply {
  const { redirecting, continueLink } = context.texts.signIn;
  return sendPublicPage(reply.header('refresh', `0; url=${path}`), 200, context, {
    heading: redirecting,
    severity: 'waiting',
    body: html`<p><a href="${path}">${continueLink}</a></p>`,
  });
}

/** Sends the page that takes the setup code. @param next the path to open after the sign-in */
export function sendSignInPage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  next: string,
  reason: SignInReason,
): FastifyReply {
  // A site that opened this window must not be able to replace the page with a copy (phishing).
  reply.header('cross-origin-opener-policy', 'same-origin');
  return sendPublicPage(reply, status, context, signInPage(context.texts, next, reason));
}

/** Responds to a page request or form without a valid session. */
export function sendUnauthenticated(request: FastifyRequest, reply: FastifyReply, context: PageContext): FastifyReply {
  const { method, url, headers, host } = request;
  if (method === 'POST') {
    return sendSignInPage(reply, 401, context, refererPath(headers.referer, host), { kind: 'ended_meanwhile' });
  }
  if (mayWithholdCookie(request)) return sendSameOriginRedirect(reply, context, safeRedirectPath(url));
  const kind = readSessionCookie(request) === null ? 'asked' : 'ended';
  return sendSignInPage(reply, 401, context, safeRedirectPath(url), { kind });
}

/** Rejects a form that another site sent or that belongs to another session. @param page the page to open again */
export function sendCsrfFailure(reply: FastifyReply, context: PageContext, page: string): FastifyReply {
  const { heading, text, link } = context.texts.signIn.csrfFailure;
  return sendMessagePage(reply, 403, context, { severity: 'bad', heading, text, link: { href: page, text: link } });
}

/** Rejects a body that is not a form. @param page the page to open again */
export function sendFormError(
  reply: FastifyReply,
  status: FormErrorStatus,
  context: PageContext,
  page: string,
): FastifyReply {
  const { malformedForm, csrfFailure } = context.texts.signIn;
  return sendMessagePage(reply, status, context, {
    severity: 'bad',
    ...malformedForm,
    link: { href: page, text: csrfFailure.link },
  });
}

/** What is wrong with the code, or why the browser is not signed in. */
function reasonTexts(texts: Texts, reason: SignInReason): { readonly problem?: string; readonly status?: string } {
  const { signIn } = texts;
  switch (reason.kind) {
    case 'asked':
      return {};
    case 'missing':
      return { problem: signIn.missing };
    case 'wrong':
      return { problem: wrongCodeText(texts, typedLetters(reason.typed).length) };
    case 'locked':
      return { problem: signIn.locked };
    case 'ended':
      return { status: signIn.sessionEnded };
    case 'ended_meanwhile':
      return { status: signIn.sessionEndedBeforeSubmit };
    case 'signed_out':
      return { status: signIn.signedOut };
    case 'used_up':
      return { status: signIn.linkUsed };
  }
}

/** @param count how many letters were typed */
function wrongCodeText({ signIn }: Texts, count: number): string {
  if (count === SETUP_CODE_FORMAT.length) return signIn.wrong;
  return count < SETUP_CODE_FORMAT.length ? signIn.tooShort(count) : signIn.tooLong(count);
}
