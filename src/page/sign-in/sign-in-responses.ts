import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import { type PublicPage, sendMessagePage, sendPublicPage } from '../document.ts';
import { cookieValue, type FormErrorStatus } from '../http.ts';
import type { PageContext } from '../page-context.ts';
import { isCrossSiteNavigation, refererPath, safeRedirectPath } from '../request-origin.ts';
import type { Texts } from '../texts/en.ts';

/** Characters of a wrong code that come back in the field: with all its spaces and dashes a code has fewer. */
const MAX_SHOWN_CODE_LENGTH = 40;
/** The command that shows the setup code. */
const SETUP_CODE_COMMAND = 'latchkey setup-code';

/** The cookie of a session. Browsers take one of this prefix from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const SESSION_COOKIE = '__Host-latchkey';

/** The value of the session's cookie; null where there is none. */
export function readSessionCookie(request: FastifyRequest): string | null {
  return cookieValue(request, SESSION_COOKIE);
}

/** Why somebody has to sign in, or could not. */
type SignInReason =
  | { readonly kind: 'asked' | 'ended' | 'ended_meanwhile' | 'signed_out' | 'used_up' | 'missing' }
  | { readonly kind: 'wrong'; readonly typed: string }
  | { readonly kind: 'locked'; readonly retryAfter: number };

/**
 * The page that takes the setup code. It shows nothing of the home but the hub's name.
 * @param next where to go on
 */
function signInPage(texts: Texts, next: string, reason: SignInReason): PublicPage {
  const { signIn } = texts;
  const problem = errorText(texts, reason);
  const told = statusText(texts, reason);
  const note = told === null ? '' : html`<p role="status">${told}</p>`;
  const message = problem === null ? '' : html`<p class="problem" id="problem" role="alert">${problem}</p>`;
  const invalid = problem === null ? '' : 'aria-invalid="true"';
  const describedBy = problem === null ? 'hint' : 'problem hint';
  const typed = reason.kind === 'wrong' ? reason.typed.slice(0, MAX_SHOWN_CODE_LENGTH) : '';
  return {
    heading: signIn.heading,
    severity: null,
    hasForm: true,
    body: html`!${note}
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

/**
 * Goes on by itself to a page of the hub's, from the hub's own: a browser that was led here by another site, or a mail,
 * keeps the session's cookie (SameSite=Strict) back until then.
 */
function sendSameOriginRedirect(reply: FastifyReply, context: PageContext, to: string): FastifyReply {
  const { redirecting: goingOn, continueLink: goOn } = context.texts.signIn;
  return sendPublicPage(reply.header('refresh', `0; url=${to}`), 200, context, {
    heading: goingOn,
    severity: 'waiting',
    body: html`<p><a href="${to}">${goOn}</a></p>`,
  });
}

/** The page that takes the setup code. @param next where to go on */
export function sendSignInPage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  next: string,
  reason: SignInReason,
): FastifyReply {
  // Who has opened this window from elsewhere can't put another page, made up like this one, in its place.
  reply.header('cross-origin-opener-policy', 'same-origin');
  return sendPublicPage(reply, status, context, signInPage(context.texts, next, reason));
}

/** Answers who is not signed in, or no longer; the request may be a form that was sent. */
export function sendUnauthenticated(request: FastifyRequest, reply: FastifyReply, context: PageContext): FastifyReply {
  const { method, url, headers, host } = request;
  const hadCookie = readSessionCookie(request) !== null;
  if (method === 'POST') {
    return sendSignInPage(reply, 401, context, refererPath(headers.referer, host), { kind: 'ended_meanwhile' });
  }
  // The browser keeps the session's cookie back then.
  if (!hadCookie && isCrossSiteNavigation(request))
    return sendSameOriginRedirect(reply, context, safeRedirectPath(url));
  return sendSignInPage(reply, 401, context, safeRedirectPath(url), { kind: hadCookie ? 'ended' : 'asked' });
}

/** Nothing was done for a form that another site has sent, or that is of another session. @param page that it was on */
export function sendCsrfFailure(reply: FastifyReply, context: PageContext, page: string): FastifyReply {
  const { heading, text, link } = context.texts.signIn.csrfFailure;
  return sendMessagePage(reply, 403, context, { severity: 'bad', heading, text, link: { href: page, text: link } });
}

/** What was sent is no form. @param page that it may have been on */
export function sendFormError(
  reply: FastifyReply,
  status: FormErrorStatus,
  context: PageContext,
  page: string,
): FastifyReply {
  const { malformedForm: unreadable, csrfFailure: foreign } = context.texts.signIn;
  return sendMessagePage(reply, status, context, {
    severity: 'bad',
    ...unreadable,
    link: { href: page, text: foreign.link },
  });
}

function errorText(texts: Texts, reason: SignInReason): string | null {
  switch (reason.kind) {
    case 'missing':
      return texts.signIn.missing;
    case 'wrong':
      return texts.signIn.wrong;
    case 'locked':
      return texts.signIn.locked(formatDuration(texts, reason.retryAfter));
    default:
      return null;
  }
}

function statusText({ signIn }: Texts, { kind }: SignInReason): string | null {
  switch (kind) {
    case 'ended':
      return signIn.sessionEnded;
    case 'ended_meanwhile':
      return signIn.sessionEndedBeforeSubmit;
    case 'signed_out':
      return signIn.signedOut;
    case 'used_up':
      return signIn.linkUsed;
    default:
      return null;
  }
}

/** Never less than it is. @param seconds whole */
function formatDuration({ signIn }: Texts, seconds: number): string {
  return seconds < 100 ? signIn.seconds(seconds) : signIn.minutes(Math.ceil(seconds / 60));
}
