import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';

const STYLE = `:root{color-scheme:light dark;font:1.1rem/1.5 system-ui,sans-serif}
body{max-width:26rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.4rem;line-height:1.25}
label{display:block;margin:1rem 0 .25rem}
input,button{font:inherit;box-sizing:border-box;width:100%;padding:.7rem;border:1px solid #767676;border-radius:.4rem}
button{margin-top:1rem;cursor:pointer}
button[value=login]{background:#0b57d0;border-color:#0b57d0;color:#fff}
:focus-visible{outline:3px solid #f29900;outline-offset:2px}
.problem{border-left:.3rem solid #c5221f;padding-left:.7rem}
.client,code{overflow-wrap:anywhere}
code{display:block;padding:.7rem;border:1px dashed #767676;font-size:1.2rem;user-select:all}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** A whole page. @param body HTML, escaped already */
export function page(title: string, body: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>!${STYLE}</style>
</head>
<body>
<main>
!${body}
</main>
</body>
</html>
`;
}

/**
 * Sends a page that can't be framed, runs no script and keeps its address to itself.
 * @param formTargets where a form on it may lead, beside its own origin: Chromium applies `form-action` to every redirect
 *   that follows a form, too
 */
export function sendPage(reply: FastifyReply, status: number, page: string, formTargets: readonly string[] = []) {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'none'",
    `form-action ${formTargets.length === 0 ? "'none'" : ["'self'", ...formTargets.map(source)].join(' ')}`,
  ];
  return reply
    .code(status)
    .header('content-security-policy', policy.join('; '))
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .type('text/html; charset=utf-8')
    .send(page);
}

/** A CSP source for an address: its origin, or its scheme where CSP can't write the host (IPv6). */
function source(address: string): string {
  const url = new URL(address);
  return /^[a-z0-9.-]+$/.test(url.hostname) ? url.origin : url.protocol;
}
