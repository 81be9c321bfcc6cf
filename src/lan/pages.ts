import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';

/** How a page's news is: it decides the sign and the colour. */
export type Mood = 'good' | 'bad' | 'neutral';

/** A page that tells a person one thing. */
export interface Notice {
  readonly mood: Mood;
  readonly heading: string;
  readonly text: string;
  /** Asks the browser to look again after this many seconds. */
  readonly reloadAfter?: number;
  readonly link?: { readonly href: string; readonly text: string };
}

const SIGNS: Readonly<Record<Mood, string>> = { good: '✓', bad: '!', neutral: '…' };

const STYLE = `
:root { color-scheme: light dark; --good: #1a7f37; --bad: #b3261e; --neutral: #57606a; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #ff8a80; --neutral: #9da7b1; } }
body { font: 1.125rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { max-width: 28rem; padding: 2rem 1.5rem; text-align: center; }
.sign { font-size: 2.5rem; line-height: 4.5rem; width: 4.5rem; border: 3px solid; border-radius: 50%; margin: 0 auto 1.5rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .neutral { color: var(--neutral); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere; }
p { margin: 0; overflow-wrap: anywhere; } .link { margin-top: 1.5rem; } footer { margin-top: 2rem; font-size: .9rem; color: var(--neutral); }
`;

/**
 * Sends a page. It loads nothing, runs nothing, can't be framed, and tells no other site its address, which may hold
 * a code.
 */
export function sendNotice(reply: FastifyReply, status: number, hubName: string, notice: Notice): FastifyReply {
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    .type('text/html; charset=utf-8')
    .send(page(hubName, notice));
}

function page(hubName: string, { mood, heading, text, reloadAfter, link }: Notice): string {
  const further = link === undefined ? '' : html`<p class="link"><a href="${link.href}">${link.text}</a></p>`;
  const refresh = reloadAfter === undefined ? '' : html`<meta http-equiv="refresh" content="${reloadAfter}">`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
!${refresh}
<title>${heading}</title>
<style>!${STYLE}</style>
</head>
<body>
<main>
<div class="sign ${mood}" aria-hidden="true">${SIGNS[mood]}</div>
<h1>${heading}</h1>
<p>${text}</p>
!${further}
<footer>${hubName}</footer>
</main>
</body>
</html>
`;
}
