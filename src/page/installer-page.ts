import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { PageSession } from '../core/setup-access.ts';
import { INSTALLER_STYLE } from './installer-style.ts';
import { mainScript } from './scripts.ts';
import type { SignedIn } from './sign-in/guard.ts';
import { STYLE } from './style.ts';

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

/** Nothing from elsewhere, nothing inline but the two styles, and no text can become markup by script. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  // The other one is of the page to sign in: the script reads that where the session is over, and it is held against this policy.
  `style-src ${[INSTALLER_STYLE, STYLE].map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`).join(' ')}`,
  "connect-src 'self'",
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Sends a page to somebody who is signed in. It is kept nowhere, and can't be framed. */
export function sendInstallerPage(asked: SignedIn, status: number, page: InstallerPage): FastifyReply {
  return asked.reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': POLICY,
      'cross-origin-opener-policy': 'same-origin',
      // With `no-referrer` browsers hide from the hub itself where a form was sent from.
      'referrer-policy': 'same-origin',
      vary: 'accept-language, cookie',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    .type('text/html; charset=utf-8')
    .send(document(asked, page));
}

/**
 * A form that the hub takes from its own page alone.
 * @param action a path of the hub's
 * @param content HTML, escaped already
 * @returns HTML
 */
export function ownForm({ csrf }: PageSession, action: string, content: string, style = ''): string {
  return html`<form method="post" action="${action}" class="${style}"><input type="hidden" name="csrf" value="${csrf}">
!${content}</form>`;
}

/** The way back to a page above this one. @returns HTML */
export function backTo(href: string, text: string): string {
  return html`<a class="back" href="${href}">&lsaquo; ${text}</a>`;
}

function document({ frame, session }: SignedIn, page: InstallerPage): string {
  const { hubName, texts } = frame;
  const { title, body, now, live, reloadAfter, narrow } = page;
  const { installer } = texts;
  const reload =
    reloadAfter === undefined ? '' : html`<noscript><meta http-equiv="refresh" content="${reloadAfter}"></noscript>`;
  const signOut = ownForm(session, '/sign-out', html`<button>${installer.signOut}</button>`);
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
!${reload}
<title>${title} &ndash; ${hubName}</title>
<style>!${INSTALLER_STYLE}</style>
<script src="/page/idiomorph.js" defer></script>
<script type="module" src="/page/${mainScript}"></script>
</head>
<body>
<a class="skip" href="#main">${installer.skip}</a>
<header class="top"><a href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 11l8-7 8 7v9H4zM12 12.6v.1M12 15v2"/></svg><span>${hubName}</span></a>!${signOut}</header>
<p class="offline" id="offline" role="status" data-text="${installer.offline}" hidden></p>
<main id="main" class="${narrow ? 'narrow' : ''}" tabindex="-1" data-now="${now ?? ''}"!${live ? ' data-live' : ''}>
!${body}
</main>
<footer class="bottom"><p>${texts.document.hubNamed(hubName)}</p></footer>
</body>
</html>
`;
}
