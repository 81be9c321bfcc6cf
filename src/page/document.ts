import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import { detectInvocation, rewriteCommands } from '../system/command-invocation.ts';
import { type DisplaySeverity, icon } from './elements.ts';
import type { PageContext } from './page-context.ts';
import { PUBLIC_STYLE } from './style.ts';

/** A page that tells a person one thing. */
export interface MessagePage {
  readonly severity: DisplaySeverity;
  readonly heading: string;
  readonly text: string;
  /** What to type at the hub next. */
  readonly command?: string;
  /** Asks the browser to look again after this many seconds. */
  readonly reloadAfter?: number;
  readonly link?: { readonly href: string; readonly text: string };
}

/** A page of the hub's. */
export interface PublicPage {
  readonly heading: string;
  /** Null: no icon over the heading. */
  readonly severity: DisplaySeverity | null;
  /** HTML, escaped already. */
  readonly body: string;
  /** Asks the browser to look again after this many seconds. */
  readonly reloadAfter?: number;
  /** It has a form that may lead to other sites. */
  readonly hasForm?: boolean;
}

/** The two kinds of pages differ in these. */
interface HtmlDocument {
  /** Content-Security-Policy, but for the style. */
  readonly policy: readonly string[];
  readonly referrer: 'same-origin' | 'no-referrer';
  readonly vary: string;
  readonly title: string;
  readonly style: string;
  /** HTML, escaped already: what else is in the head, and what is in the body. */
  readonly head: string;
  readonly body: string;
}

/** Sends a document. It is kept nowhere, can't be framed, and loads nothing from elsewhere. */
export function sendDocument(
  reply: FastifyReply,
  status: number,
  { language }: PageContext['texts'],
  { policy, referrer, vary, title, style, head, body }: HtmlDocument,
): FastifyReply {
  const general = ["default-src 'none'", 'img-src data:', "base-uri 'none'", "frame-ancestors 'none'"];
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': [...general, ...policy].join('; '),
      'referrer-policy': referrer,
      vary,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    .type('text/html; charset=utf-8')
    .send(html`<!doctype html>
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
!${withTypedCommands(body)}
</body>
</html>
`);
}

/** HTML, with its commands as they are typed at the hub. */
function withTypedCommands(body: string): string {
  const { program, usesSudo: bySudo } = detectInvocation();
  return rewriteCommands(body, { program: html`${program}`, usesSudo: bySudo });
}

/** Allows styles inline, by their hashes. */
export function styleSource(...styles: readonly string[]): string {
  const hashes = styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  return `style-src ${hashes.join(' ')}`;
}

const CONTENT_SECURITY_POLICY = [styleSource(PUBLIC_STYLE)];

/** Sends a page that tells a person one thing. */
export function sendMessagePage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  notice: MessagePage,
): FastifyReply {
  const { text, command, link, ...page } = notice;
  const typed = command === undefined ? '' : html`<p><code>${command}</code></p>`;
  const further = link === undefined ? '' : html`<p><a href="${link.href}">${link.text}</a></p>`;
  return sendPublicPage(reply, status, context, { ...page, body: html`<p>${text}</p>!${typed}!${further}` });
}

/**
 * Sends a page. It loads nothing, runs nothing, can't be framed, and tells no other site its address, which may hold
 * a code.
 */
export function sendPublicPage(
  reply: FastifyReply,
  status: number,
  context: PageContext,
  page: PublicPage,
): FastifyReply {
  const { hubName, texts } = context;
  const { severity, heading, body, reloadAfter, hasForm: form = false } = page;
  return sendDocument(reply, status, texts, {
    // Browsers hold every redirect that follows a form against `form-action`, and a portal may send a person anywhere. And
    // with `no-referrer` they hide from the hub itself where the form was sent from.
    policy: form ? CONTENT_SECURITY_POLICY : [...CONTENT_SECURITY_POLICY, "form-action 'none'"],
    referrer: form ? 'same-origin' : 'no-referrer',
    vary: 'accept-language',
    title: heading,
    style: PUBLIC_STYLE,
    head: reloadAfter === undefined ? '' : html`<meta http-equiv="refresh" content="${reloadAfter}">`,
    body: html`<main>
!${severity === null ? '' : icon(severity)}
<h1>${heading}</h1>
!${body}
<footer>${hubName === heading ? texts.document.hub : texts.document.hubNamed(hubName)}</footer>
</main>`,
  });
}
