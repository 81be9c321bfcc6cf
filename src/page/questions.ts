import { html } from 'ghtml';
import type { PageSession } from '../core/setup-access.ts';
import type { Frame } from './frame.ts';
import { backTo, type InstallerPage, ownForm } from './installer-page.ts';
import { sign } from './signs.ts';

/** What is asked back before something is lost. */
export interface Question {
  readonly heading: string;
  readonly text: string;
  /** Where the answer "yes" is sent. */
  readonly action: string;
  readonly yes: string;
  /** Where the answer "no" leads. */
  readonly back: string;
  /** HTML of the form, escaped already. */
  readonly fields?: string;
}

/** A question as a page of its own, so that it is asked without scripts too. */
export function questionPage(question: Question, { texts }: Frame, session: PageSession): InstallerPage {
  const { heading, text, action, yes, back, fields } = question;
  const content = html`!${fields ?? ''}
<div class="actions"><button class="danger primary" id="yes">${yes}</button><a class="button" href="${back}">${texts.installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`<h1>${heading}</h1>
<p>${text}</p>
!${ownForm(session, action, content, 'fields')}`,
  };
}

/** Why something could not be done, and the way back. */
export function refusalPage(
  heading: string,
  text: string,
  back: { readonly href: string; readonly text: string },
): InstallerPage {
  return {
    title: heading,
    narrow: true,
    body: html`<div class="health">!${sign('bad')}<h1>${heading}</h1></div>
<p>${text}</p>
!${backTo(back.href, back.text)}`,
  };
}
