import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Frame } from './frame.ts';
import { type Mood, sign } from './signs.ts';
import { STYLE } from './style.ts';

/** A page that tells a person one thing. */
export interface Notice {
  readonly mood: Mood;
  readonly heading: string;
  readonly text: string;
  /** What to type at the hub next. */
  readonly command?: string;
  /** Asks the browser to look again after this many seconds. */
  readonly reloadAfter?: number;
  readonly link?: { readonly href: string; readonly text: string };
}

/** A page of the hub's. */
export interface Page {
  readonly heading: string;
  /** Null: no sign over the heading. */
  readonly mood: Mood | null;
  /** HTML, escaped already. */
  readonly body: string;
  /** Asks the browser to look again after this many seconds. */
  readonly reloadAfter?: number;
  /** It has a form that may lead to other sites. */
  readonly form?: boolean;
}

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sends a page that tells a person one thing. */
export function sendNotice(reply: FastifyReply, status: number, frame: Frame, notice: Notice): FastifyReply {
  const { text, command, link, ...page } = notice;
  const typed = command === undefined ? '' : html`<p><code>${command}</code></p>`;
  const further = link === undefined ? '' : html`<p><a href="${link.href}">${link.text}</a></p>`;
  return sendPage(reply, status, frame, { ...page, body: html`<p>${text}</p>!${typed}!${further}` });
}

/**
 * Sends a page. It loads nothing, runs nothing, can't be framed, and tells no other site its address, which may hold
 * a code.
 */
export function sendPage(reply: FastifyReply, status: number, frame: Frame, page: Page): FastifyReply {
  // Browsers hold every redirect that follows a form against `form-action`, and a portal may send a person anywhere. And
  // with `no-referrer` they hide from the hub itself where the form was sent from.
  const [policy, referrer] = page.form ? [POLICY, 'same-origin'] : [`${POLICY}; form-action 'none'`, 'no-referrer'];
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': policy,
      'referrer-policy': referrer,
      vary: 'accept-language',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    .type('text/html; charset=utf-8')
    .send(document(frame, page));
}

function document({ hubName, texts }: Frame, { mood, heading, body, reloadAfter }: Page): string {
  const refresh = reloadAfter === undefined ? '' : html`<meta http-equiv="refresh" content="${reloadAfter}">`;
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
!${refresh}
<title>${heading}</title>
<style>!${STYLE}</style>
</head>
<body>
<main>
!${mood === null ? '' : sign(mood)}
<h1>${heading}</h1>
!${body}
<footer>${hubName === heading ? texts.document.hub : texts.document.hubNamed(hubName)}</footer>
</main>
</body>
</html>
`;
}
