import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { PageSession } from '../core/setup-access.ts';
import { sendDocument, styleSrcDirective } from './document.ts';
import type { AuthenticatedRequest, PageRequest } from './page-context.ts';
import { mainScript } from './scripts.ts';
import { INSTALLER_STYLE, PUBLIC_STYLE } from './style.ts';

/** A page of the installer, who is signed in. */
export interface InstallerPage {
  /** The document's title; {@link sendInstallerPage} adds the hub's name. */
  readonly title: string;
  /** Escaped HTML with exactly one `h1`. */
  readonly body: string;
  /** The hub's wall clock in ms since 1970, to which the times of the page are relative. */
  readonly now?: number;
  /** The page's script keeps the page up to date while it is visible. */
  readonly live?: boolean;
  /** Something is awaited: without scripts, the browser reloads the page after {@link RELOAD_SECONDS}. */
  readonly isWaiting?: boolean;
  /** One column, as for forms and confirmations. */
  readonly narrow?: boolean;
}

/** Allows no inline code but the two styles. Trusted types keep scripts from turning text into markup. */
const CONTENT_SECURITY_POLICY = [
  "script-src 'self'",
  // The second style is that of the sign-in page: the script loads it when the session is over, and this policy applies
  // to it.
  styleSrcDirective(INSTALLER_STYLE, PUBLIC_STYLE),
  "connect-src 'self'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

const RELOAD_SECONDS = 5;

/** Sends a page to a browser that is signed in. */
export function sendInstallerPage(req: PageRequest, status: number, page: InstallerPage): FastifyReply {
  const { context, session } = req;
  const { hubName, texts } = context;
  const { title, body, now, live, isWaiting, narrow } = page;
  const { installer } = texts;
  const reload = isWaiting ? html`<noscript><meta http-equiv="refresh" content="${RELOAD_SECONDS}"></noscript>` : '';
  // A user of a reverse proxy signs out there.
  const signOut =
    context.ingress === undefined ? csrfForm(session, '/sign-out', html`<button>${installer.signOut}</button>`) : '';
  return sendDocument(req.reply.header('cross-origin-opener-policy', 'same-origin'), status, context, {
    policy: CONTENT_SECURITY_POLICY,
    // With `no-referrer` browsers send `Origin: null`, and the hub could not check where a form came from.
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
<footer class="bottom"><p>${texts.footer.hubNamed(hubName)}</p></footer>`,
  });
}

/**
 * A form with the session's CSRF token.
 * @param action a path of the hub
 * @param content escaped HTML
 * @returns HTML
 */
export function csrfForm({ csrfToken }: PageSession, action: string, content: string, style = ''): string {
  return html`<form method="post" action="${action}" class="${style}"><input type="hidden" name="csrf" value="${csrfToken}">
!${content}</form>`;
}

/** A link to the page above this one. @returns HTML */
export function backLink(href: string, text: string): string {
  return html`<a class="back" href="${href}">&lsaquo; ${text}</a>`;
}

/** Redirects a browser to another page of the hub after a form. */
export function redirectTo({ reply }: AuthenticatedRequest, path: string): FastifyReply {
  return reply.header('cache-control', 'no-store').redirect(path, 303);
}
