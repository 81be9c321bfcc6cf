import { html } from 'ghtml';
import { page } from './layout.ts';

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
