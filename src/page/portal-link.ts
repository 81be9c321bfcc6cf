import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { ShownLink } from '../core/portals/login-link.ts';
import type { Secret } from '../core/secret.ts';
import { sendPublicPage } from './document.ts';
import { BROWSER_TOKEN_COOKIE, setCallbackCookie } from './http.ts';
import type { PageContext } from './page-context.ts';

/** What the page with a portal's code shows besides the code. */
interface CodePageOptions {
  /** A sentence before the code. */
  readonly note?: string;
  /** The page on which the person continues after the login. */
  readonly next?: string;
}

/**
 * Leads a browser to the portal. If the person types a code there, or compares one, a page shows it first.
 * @param browserToken see `LanService.browserToken`
 */
export function sendToPortal(
  reply: FastifyReply,
  context: PageContext,
  { authorizeUrl, userCode, containsUserCode }: ShownLink,
  browserToken: Secret,
  { note = '', next }: CodePageOptions = {},
): FastifyReply {
  if (userCode === undefined) return redirectToPortal(reply, browserToken, authorizeUrl);
  const { portalCode: texts } = context.texts;
  const link = next === undefined ? '' : html`<p><a href="${next}">${context.texts.batch.openHubPage}</a></p>`;
  return sendPublicPage(reply, 200, context, {
    heading: containsUserCode ? texts.compareHeading : texts.heading,
    severity: null,
    body: html`<p>${containsUserCode ? texts.compare : texts.text} ${note}</p>
<p class="code">${userCode}</p>
<p><a class="button" href="${authorizeUrl}" target="_blank" rel="noreferrer">${texts.logIn(URL.parse(authorizeUrl)?.host ?? authorizeUrl)}</a></p>
<p class="quiet">${next === undefined ? texts.after : texts.afterInBatch}</p>
!${link}`,
  });
}

/** Redirects a browser to the portal, and sets the cookie by which the hub recognises it when it comes back. */
function redirectToPortal(reply: FastifyReply, browserToken: Secret, authorizeUrl: string): FastifyReply {
  return setCallbackCookie(reply, BROWSER_TOKEN_COOKIE, browserToken)
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    .redirect(authorizeUrl, 303);
}
