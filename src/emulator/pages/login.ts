import { html } from 'ghtml';
import { page } from './layout.ts';

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
