import { html } from 'ghtml';
import { page } from './layout.ts';

/** A page that says one thing. */
export function messagePage(title: string, text: string): string {
  return page(
    title,
    html`<h1>${title}</h1>
<p class="client">${text}</p>`,
  );
}
