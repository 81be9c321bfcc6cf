import { html } from 'ghtml';
import { page } from './layout.ts';

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
