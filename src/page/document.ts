import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import { detectInvocation, rewriteCommands } from '../system/command-invocation.ts';
import { type DisplaySeverity, icon } from './elements.ts';
import { addBasePath } from './ingress/base-path.ts';
import type { PageContext } from './page-context.ts';
import { PUBLIC_STYLE } from './style.ts';

/** A page with one short message, such as a result or an error. */
export interface MessagePage {
  readonly severity: DisplaySeverity;
  readonly heading: string;
  readonly text: string;
  /** The browser reloads the page after this many seconds. */
  readonly reloadAfter?: number;
  /** Where to go on; shown as a button. */
  readonly link?: { readonly href: string; readonly text: string };
}

/** A page that needs no sign-in. */
export interface PublicPage {
  readonly heading: string;
  /** Null: no icon over the heading. */
  readonly severity: DisplaySeverity | null;
  /** Escaped HTML. */
  readonly body: string;
  /** The browser reloads the page after this many seconds. */
  readonly reloadAfter?: number;
  /** Whether the page has a form whose response may redirect to another site. */
  readonly hasForm?: boolean;
}

/** What differs between public pages and the installer's pages. */
interface HtmlDocument {
  /** Directives of the Content-Security-Policy, besides the general ones. */
  readonly policy: readonly string[];
  readonly referrer: 'same-origin' | 'no-referrer';
  readonly vary: string;
  readonly title: string;
  readonly style: string;
  /** Escaped HTML: further elements of the head, and the body. */
  readonly head: string;
  readonly body: string;
}

/**
 * Sends an HTML document. No cache stores it, and it loads nothing from elsewhere. No site can frame it, except that of
 * a reverse proxy through which it is requested.
 */
export function sendDocument(
  reply: FastifyReply,
  status: number,
  { texts: { language }, ingress }: PageContext,
  { policy, referrer, vary, title, style, head, body }: HtmlDocument,
): FastifyReply {
  const parents = ingress === undefined ? "frame-ancestors 'none'" : "frame-ancestors 'self'";
  const general = ["default-src 'none'", 'img-src data:', "base-uri 'none'", parents];
  const document = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>!${style}</style>
!${head}
</head>
<body>
!${rewriteHtmlCommands(body)}
</body>
</html>
`;
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': [...general, ...policy].join('; '),
      'referrer-policy': referrer,
      vary,
      'x-content-type-options': 'nosniff',
      'x-frame-options': ingress === undefined ? 'DENY' : 'SAMEORIGIN',
    })
    .type('text/html; charset=utf-8')
    .send(addBasePath(document, ingress?.basePath ?? ''));
}

/** Rewrites the commands in HTML to the way in which they are typed on this hub. */
function rewriteHtmlCommands(body: string): string {
  const { program, usesSudo } = detectInvocation();
  return rewriteCommands(body, { program: html`${program}`, usesSudo });
}

/** The CSP directive that allows these inline styles by their hashes. */
export function styleSrcDirective(...styles: readonly string[]): string {
  const hashes = styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  return `style-src ${hashes.join(' ')}`;
}

const CONTENT_SECURITY_POLICY = [styleSrcDirective(PUBLIC_STYLE)];

/** Sends a page with one short message. */
export function sendMessagePage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  message: MessagePage,
): FastifyReply {
  const { text, link, ...page } = message;
  const linkLine = link === undefined ? '' : html`<p><a class="button" href="${link.href}">${link.text}</a></p>`;
  return sendPublicPage(reply, status, context, { ...page, body: html`<p>${text}</p>!${linkLine}` });
}

/**
 * Sends a public page. It runs no script. Its address may hold a code, so the browser sends no other site a `Referer`.
 */
export function sendPublicPage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  page: PublicPage,
): FastifyReply {
  const { hubName, texts } = context;
  const { severity, heading, body, reloadAfter, hasForm = false } = page;
  return sendDocument(reply, status, context, {
    // Browsers apply `form-action` to every redirect after a form too, and a portal may redirect anywhere. With
    // `no-referrer` they send `Origin: null`, and the hub could not check where the form came from.
    policy: hasForm ? CONTENT_SECURITY_POLICY : [...CONTENT_SECURITY_POLICY, "form-action 'none'"],
    referrer: hasForm ? 'same-origin' : 'no-referrer',
    vary: 'accept-language',
    title: heading,
    style: PUBLIC_STYLE,
    head: reloadAfter === undefined ? '' : html`<meta http-equiv="refresh" content="${reloadAfter}">`,
    body: html`<main>
!${severity === null ? '' : icon(severity)}
<h1>${heading}</h1>
!${body}
<footer>${hubName === heading ? texts.footer.hub : texts.footer.hubNamed(hubName)}</footer>
</main>`,
  });
}
