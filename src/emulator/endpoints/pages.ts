import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import { logMessage } from '../http/request-log.ts';

const STYLE = `:root{color-scheme:light dark;font:1.1rem/1.5 system-ui,sans-serif;
--page:#f3f0fa;--card:#fff;--text:#1d1b26;--quiet:#5d586b;--line:#857f94;--soft:#eeebf7;--main:#4b3fbb;--on-main:#fff;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#14121b;--card:#201d2a;--text:#efedf5;--quiet:#b3adc2;--line:#837d93;
--soft:#2c2839;--main:#b9b0ff;--on-main:#1c1640;--bad:#ff9a91}}
body{margin:0;background:var(--page);color:var(--text)}
main{box-sizing:border-box;max-width:28rem;margin:0 auto;padding:1rem 1.5rem 1.5rem;background:var(--card);min-height:100vh}
@media(min-width:32rem){body{padding:3rem 1rem}main{min-height:0;padding:1.25rem 2rem 2rem;border-radius:1rem;border:1px solid var(--soft)}}
.portal{margin:0;padding-bottom:.75rem;border-bottom:1px solid var(--soft);font-size:.9rem;color:var(--quiet)}
h1{font-size:1.4rem;line-height:1.25;margin:1.25rem 0 .75rem}
p{margin:.75rem 0}
label{display:block;margin:1rem 0 .25rem}
input,button{font:inherit;color:inherit;box-sizing:border-box;width:100%;padding:.7rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}
button{margin-top:.75rem;cursor:pointer}
button[value=login],button[value=continue],button[value=logout],button:not([value]){margin-top:1.5rem;background:var(--main);border-color:var(--main);color:var(--on-main);font-weight:600}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
.hint,.problem{padding:.6rem .8rem;border-radius:.5rem;background:var(--soft)}
.problem{border-left:.3rem solid var(--bad)}
.client,code{overflow-wrap:anywhere}
code{display:block;padding:.7rem;border:1px dashed var(--line);border-radius:.5rem;font-size:1.2rem;user-select:all}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/**
 * Sends a page that can't be framed, runs no script and sends no Referer. Its policy has no `form-action`: Chromium
 * applies that to every redirect after the form too, and a client's address may redirect anywhere.
 */
export function sendPage(reply: FastifyReply, status: number, page: string) {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return reply
    .code(status)
    .header('content-security-policy', policy.join('; '))
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .type('text/html; charset=utf-8')
    .send(page);
}

/** What the login page and the confirmation page say of a request. */
interface RequestOnPage {
  readonly client: { readonly name: string };
  /** The requested scope, or null. */
  readonly scope: string | null;
  /** The code that the user compares with that of a device, or null. */
  readonly userCode: string | null;
}

/** The content of the login page. */
export interface LoginPage extends RequestOnPage {
  /** The user name of the last attempt, as the initial value; empty at first. */
  readonly userName: string;
  /** The error of the last attempt, or null. */
  readonly complaint: string | null;
  /** The demo user, if no users are configured. */
  readonly hint: { readonly name: string; readonly password: string } | null;
}

/** The login page. Its form posts to the page's own address. */
export function loginPage({ userName, complaint, hint, ...request }: LoginPage): string {
  const demo =
    hint === null
      ? ''
      : html`<p class="hint">This portal is emulated: log in as <b>${hint.name}</b> with the password <b>${hint.password}</b>.</p>`;
  return page(
    'Log in',
    html`<h1>Log in to the portal</h1>
!${describeRequest(request)}
!${demo}
!${describeProblem(complaint)}
<form method="post">
<label for="username">User name</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" value="${userName}" required ${userName === '' ? 'autofocus' : ''}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required ${userName === '' ? '' : 'autofocus'}>
<button name="action" value="login">Log in and allow</button>
<button name="action" value="refuse" formnovalidate>Refuse</button>
</form>`,
  );
}

/** The confirmation page for a browser that has logged in before. Its form posts to the page's own address. */
export function consentPage({ user, ...request }: RequestOnPage & { readonly user: string }): string {
  return page(
    'Allow access',
    html`<h1>Allow access?</h1>
!${describeRequest(request)}
<form method="post">
<button name="action" value="continue">Continue as ${user}</button>
<button name="action" value="refuse">Refuse</button>
<button name="action" value="other">Another user</button>
</form>`,
  );
}

function describeRequest({ client, scope, userCode }: RequestOnPage): string {
  const access = scope === null ? '' : html`<p>Requested permissions: ${scope}</p>`;
  // RFC 8628, 5.4: the user compares the code, because somebody else may have sent the link.
  const code =
    userCode === null
      ? ''
      : html`<p>Continue only if your device shows this code:</p>
<p><code>${userCode}</code></p>`;
  return html`<p><b class="client">${client.name}</b> asks for access to your account.</p>
!${access}
!${code}`;
}

function describeProblem(complaint: string | null): string {
  return complaint === null ? '' : html`<p class="problem" role="alert">${complaint}</p>`;
}

/** The page at which a user enters the code that a device shows. @param complaint the error of the last attempt, or null */
export function userCodePage(complaint: string | null): string {
  return page(
    'Connect a device',
    html`<h1>Connect a device</h1>
!${describeProblem(complaint)}
<form method="get">
<label for="user_code">The code that your device shows</label>
<input id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" required autofocus>
<button>Continue</button>
</form>`,
  );
}

/** A page with an authorization code, for a person who copies it into an application. */
export function codePage(client: string, code: string): string {
  return page(
    'Your code',
    html`<h1>Your code</h1>
<p>If <b class="client">${client}</b> does not continue automatically, enter this code there. It is valid for less than a minute.</p>
<p><code>${code}</code></p>
<p>Then you can close this page.</p>`,
  );
}

/**
 * The page that asks whether a user wants to log out. Its form posts to the page's own address.
 * @param client the name of the client that asks for it, or null
 */
export function logoutPage(client: string | null, user: string): string {
  const who = client === null ? '' : html`<p><b class="client">${client}</b> asks for it.</p>`;
  return page(
    'Log out',
    html`<h1>Log out ${user}?</h1>
!${who}
<form method="post">
<button name="action" value="logout">Log out</button>
</form>`,
  );
}

/** Sends a page with one message, which the request log shows too. */
export function sendMessage(reply: FastifyReply, status: number, title: string, text: string): FastifyReply {
  logMessage(reply.request, text);
  const body = html`<h1>${title}</h1>
<p class="client">${text}</p>`;
  return sendPage(reply, status, page(title, body));
}

/** A whole page. @param body HTML, already escaped */
function page(title: string, body: string): string {
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
<p class="portal">Portal emulator</p>
!${body}
</main>
</body>
</html>
`;
}
