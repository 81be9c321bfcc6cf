import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { PageSession } from '../core/setup-access.ts';
import { sendDocument, styleSource } from './document.ts';
import { mainScript } from './scripts.ts';
import type { AuthenticatedRequest } from './sign-in/authenticated-routes.ts';
import { INSTALLER_STYLE, PUBLIC_STYLE } from './style.ts';

/** A page of the installer's. */
export interface InstallerPage {
  /** What the window is called; the hub's name is added. */
  readonly title: string;
  /** HTML, escaped already; it has the one `h1`. */
  readonly body: string;
  /** The hub's wall clock, in ms since 1970: what the times of the page are counted from. */
  readonly now?: number;
  /** It shows how things stand, and is kept up to date while somebody looks at it. */
  readonly live?: boolean;
  /** Where scripts are off, the browser is asked to look again after this many seconds. */
  readonly reloadAfter?: number;
  /** One column, as forms and questions are. */
  readonly narrow?: boolean;
}

/** Nothing inline but the two styles, and no text can become markup by script. */
const CONTENT_SECURITY_POLICY = [
  "script-src 'self'",
  // The other one is of the page to sign in: the script reads that where the session is over, and it is held against this policy.
  styleSource(INSTALLER_STYLE, PUBLIC_STYLE),
  "connect-src 'self'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

/** Sends a page to somebody who is signed in. */
export function sendInstallerPage(asked: AuthenticatedRequest, status: number, page: InstallerPage): FastifyReply {
  const { context, session } = asked;
  const { hubName, texts } = context;
  const { title, body, now, live, reloadAfter, narrow } = page;
  const { installer } = texts;
  const reload =
    reloadAfter === undefined ? '' : html`<noscript><meta http-equiv="refresh" content="${reloadAfter}"></noscript>`;
  const signOut = csrfForm(session, '/sign-out', html`<button>${installer.signOut}</button>`);
  return sendDocument(asked.reply.header('cross-origin-opener-policy', 'same-origin'), status, texts, {
    policy: CONTENT_SECURITY_POLICY,
    // With `no-referrer` browsers hide from the hub itself where a form was sent from.
    referrer: 'same-origin',
    vary: 'accept-language, cookie',
    title: `${title} – ${hubName}`,
    style: INSTALLER_STYLE,
    head: html`!${reload}
<script src="/page/idiomorph.js" defer></script>
<script type="module" src="/page/${mainScript}"></script>`,
    body: html`<a class="skip" href="#main">${installer.skipLink}</a>
<header class="top"><a href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 11l8-7 8 7v9H4zM12 12.6v.1M12 15v2"/></svg><span>${hubName}</span></a>!${signOut}</header>
<p class="offline" id="offline" role="status" data-text="${installer.offline}" hidden></p>
<main id="main" class="${narrow ? 'narrow' : ''}" tabindex="-1" data-now="${now ?? ''}"!${live ? ' data-live' : ''}>
!${body}
</main>
<footer class="bottom"><p>${texts.document.hubNamed(hubName)}</p></footer>`,
  });
}

/**
 * A form that the hub takes from its own page alone.
 * @param action a path of the hub's
 * @param content HTML, escaped already
 * @returns HTML
 */
export function csrfForm({ csrfToken: csrf }: PageSession, action: string, content: string, style = ''): string {
  return html`<form method="post" action="${action}" class="${style}"><input type="hidden" name="csrf" value="${csrf}">
!${content}</form>`;
}

/** The way back to a page above this one. @returns HTML */
export function backLink(href: string, text: string): string {
  return html`<a class="back" href="${href}">&lsaquo; ${text}</a>`;
}
