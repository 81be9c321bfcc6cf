import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';

/** How a page's news is: it decides the sign and the colour. */
type Mood = 'good' | 'bad' | 'waiting' | 'neutral';

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

/** Drawn, because fonts differ in what they make of a check mark. Paths in a box of 24 by 24. */
const SIGNS: Readonly<Record<Mood, string>> = {
  good: 'M6.5 12.5l3.7 3.7 7.3-7.9',
  bad: 'M12 6.5v7M12 17.4v.1',
  waiting: 'M7 12v.1M12 12v.1M17 12v.1',
  neutral: 'M12 6.7v.1M12 11.2v6.3',
};

const STYLE = `
:root { color-scheme: light dark; --page: #eef1f4; --card: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de;
  --good: #1a7f37; --bad: #b3261e; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --page: #12161b; --card: #1d232a; --text: #eceff2; --quiet: #a8b3bd; --line: #3a444f;
  --good: #57d27a; --bad: #ff9a91; --link: #8fb7ff; } }
body { font: 1.125rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; min-height: 100dvh; display: grid;
  grid-template-columns: minmax(0, 28rem); justify-content: center; align-items: center; background: var(--page); color: var(--text); }
main { margin: 1rem; padding: 2.25rem 1.25rem 1.25rem; text-align: center; background: var(--card);
  border: 1px solid var(--line); border-radius: 1rem; }
svg { display: block; width: 4.5rem; height: 4.5rem; margin: 0 auto 1.25rem; fill: none; stroke: var(--card); stroke-width: 2.4;
  stroke-linecap: round; stroke-linejoin: round; border-radius: 50%; }
.good { background: var(--good); } .bad { background: var(--bad); } .waiting, .neutral { background: var(--quiet); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h1, p { overflow-wrap: anywhere; } h1 { text-wrap: balance; } p { margin: 0; text-wrap: pretty; } p + p { margin-top: 1.25rem; }
code { display: inline-block; padding: .5rem .9rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--page);
  font: 1rem/1.4 ui-monospace, monospace; user-select: all; }
a { display: inline-block; padding: .6rem 1.2rem; color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
footer { margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet); overflow-wrap: anywhere; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Sends a page. It loads nothing, runs nothing, can't be framed, and tells no other site its address, which may hold
 * a code.
 */
export function sendNotice(reply: FastifyReply, status: number, hubName: string, notice: Notice): FastifyReply {
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': POLICY,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    .type('text/html; charset=utf-8')
    .send(page(hubName, notice));
}

function page(hubName: string, { mood, heading, text, command, reloadAfter, link }: Notice): string {
  const typed = command === undefined ? '' : html`<p><code>${command}</code></p>`;
  const further = link === undefined ? '' : html`<p><a href="${link.href}">${link.text}</a></p>`;
  const refresh = reloadAfter === undefined ? '' : html`<meta http-equiv="refresh" content="${reloadAfter}">`;
  return html`<!doctype html>
<html lang="en">
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
<svg class="${mood}" viewBox="0 0 24 24" aria-hidden="true"><path d="${SIGNS[mood]}"/></svg>
<h1>${heading}</h1>
<p>${text}</p>
!${typed}
!${further}
<footer>${hubName === heading ? 'Latchkey hub' : `Latchkey hub “${hubName}”`}</footer>
</main>
</body>
</html>
`;
}
