import { html } from 'ghtml';
import type { ApplianceStatus } from '../../core/administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { csrfForm, type InstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** What is asked back before something is lost. */
export interface Confirmation {
  readonly heading: string;
  readonly text: string;
  /** Where the answer "yes" is sent. */
  readonly action: string;
  readonly confirmLabel: string;
  /** Where the answer "no" leads. */
  readonly cancelHref: string;
  /** HTML of the form, escaped already. */
  readonly fieldsHtml?: string;
}

/** As a page of its own, so that it is asked without scripts too. */
export function confirmationPage(
  confirmation: Confirmation,
  { texts }: PageContext,
  session: PageSession,
): InstallerPage {
  const { heading, text, action, confirmLabel: yes, cancelHref: back, fieldsHtml: fields } = confirmation;
  const content = html`!${fields ?? ''}
<div class="actions"><button class="danger primary" id="yes">${yes}</button><a class="button" href="${back}">${texts.installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`<h1>${heading}</h1>
<p>${text}</p>
!${csrfForm(session, action, content, 'fields')}`,
  };
}

/**
 * Whether an appliance is to get a new secret.
 * @param token of the form
 * @param keys whether it has keys of its own, and is asked about them; `missing`: they were not ticked
 */
export function secretRotationConfirmation(
  { appliance: texts }: Texts,
  name: string,
  token: string,
  keys: 'none' | 'asked' | 'missing',
): Confirmation {
  const problem = keys === 'missing' ? html`<p class="problem" id="keys-problem">${texts.rotateKeysMissing}</p>` : '';
  const invalid = keys === 'missing' ? ' aria-invalid="true" aria-describedby="keys-problem"' : '';
  const tick = html`<p>${texts.rotateKeys}</p>
<input type="hidden" name="asked_keys" value="yes">
<div class="field"><label class="tick"><input type="checkbox" name="replace_keys" value="yes"!${invalid}>${texts.rotateKeysLabel}</label>
!${problem}</div>`;
  return {
    heading: texts.rotateHeading(name),
    text: texts.rotateText,
    action: appliancePath(name, 'rotate-secret'),
    confirmLabel: texts.newSecret,
    cancelHref: appliancePath(name),
    fieldsHtml: html`<input type="hidden" name="form" value="${token}">!${keys === 'none' ? '' : tick}`,
  };
}

/** Whether an appliance's grant is to be forgotten. */
export function unpairConfirmation({ appliance: texts }: Texts, { name }: ApplianceStatus): Confirmation {
  return {
    heading: texts.disconnectHeading(name),
    text: texts.disconnectText,
    action: appliancePath(name, 'unpair'),
    confirmLabel: texts.disconnect,
    cancelHref: appliancePath(name),
  };
}

/** Whether an appliance is to be removed; one that waits to be approved is refused by that. */
export function removalConfirmation(
  { appliance: texts, overview }: Texts,
  { name, waitingForApproval }: ApplianceStatus,
): Confirmation {
  const isRefused = waitingForApproval !== undefined;
  return {
    heading: isRefused ? texts.rejectHeading(name) : texts.removeHeading(name),
    text: isRefused ? texts.rejectText : texts.removeText,
    action: appliancePath(name, 'remove'),
    confirmLabel: isRefused ? overview.reject : texts.remove,
    cancelHref: appliancePath(name),
  };
}
