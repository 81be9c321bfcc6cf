import { html } from 'ghtml';
import { page } from './page-layout.ts';

/** What the login page says. */
export interface LoginPage {
  /** The client's name. */
  readonly client: string;
  /** The scope asked for, or null. */
  readonly scope: string | null;
  /** The user name of the last try, which need not be typed again; empty at first. */
  readonly userName: string;
  /** What was wrong with the last try, or null. */
  readonly complaint: string | null;
  /** The user to log in as, where nobody was told otherwise. */
  readonly hint: { readonly name: string; readonly password: string } | null;
}

/** The login page. Its form posts to the page's own address. */
export function loginPage({ client, scope, userName, complaint, hint }: LoginPage): string {
  const problem = complaint === null ? '' : html`<p class="problem" role="alert">${complaint}</p>`;
  const access = scope === null ? '' : html`<p>It asks for: ${scope}</p>`;
  const demo =
    hint === null
      ? ''
      : html`<p class="hint">This portal is emulated: log in as <b>${hint.name}</b> with the password <b>${hint.password}</b>.</p>`;
  return page(
    'Log in',
    html`<h1>Log in to the portal</h1>
<p><b class="client">${client}</b> asks for access to your account.</p>
!${access}
!${demo}
!${problem}
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

/** What the page says that asks somebody who is logged in. */
export interface ConsentPage {
  /** The client's name. */
  readonly client: string;
  /** The scope asked for, or null. */
  readonly scope: string | null;
  /** Who is logged in. */
  readonly user: string;
}

/** The page that only wants a yes or no. Its form posts to the page's own address. */
export function consentPage({ client, scope, user }: ConsentPage): string {
  const access = scope === null ? '' : html`<p>It asks for: ${scope}</p>`;
  return page(
    'Allow access',
    html`<h1>Allow access?</h1>
<p><b class="client">${client}</b> asks for access to your account.</p>
!${access}
<form method="post">
<button name="action" value="continue">Continue as ${user}</button>
<button name="action" value="refuse">Refuse</button>
<button name="action" value="other">Another user</button>
</form>`,
  );
}

/** Shows an authorization code to a person who carries it to the application that asked for it. */
export function codePage(client: string, code: string): string {
  return page(
    'Your code',
    html`<h1>Your code</h1>
<p>If <b class="client">${client}</b> does not go on by itself, enter this code there. It is good for less than a minute.</p>
<p><code>${code}</code></p>
<p>Then you can close this page.</p>`,
  );
}

/** A page that says one thing. */
export function messagePage(title: string, text: string): string {
  return page(
    title,
    html`<h1>${title}</h1>
<p class="client">${text}</p>`,
  );
}
