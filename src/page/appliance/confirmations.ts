import { html } from 'ghtml';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { Named } from '../../core/name.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { csrfForm, type InstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** A question that a person confirms before something is lost. */
export interface Confirmation {
  readonly heading: string;
  readonly text: string;
  /** The path of the form that confirms. */
  readonly action: string;
  readonly confirmLabel: string;
  /** The page for "Cancel". */
  readonly cancelHref: string;
  /** Escaped HTML: further fields of the form. */
  readonly fieldsHtml?: string;
}

/** A confirmation as a page, so that it works without scripts. */
export function confirmationPage(
  confirmation: Confirmation,
  { texts }: PageContext,
  session: PageSession,
): InstallerPage {
  const { heading, text, action, confirmLabel, cancelHref, fieldsHtml = '' } = confirmation;
  const content = html`!${fieldsHtml}
<div class="actions"><button class="danger primary" id="yes">${confirmLabel}</button><a class="button" href="${cancelHref}">${texts.installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`<h1>${heading}</h1>
<p>${text}</p>
!${csrfForm(session, action, content, 'fields')}`,
  };
}

/**
 * Asks whether to give an appliance a new secret.
 * @param token the form's idempotency key
 * @param keys `asked`: the appliance has its own keys, and a checkbox asks whether to replace them; `missing`: it was
 * not ticked
 */
export function secretRotationConfirmation(
  { appliance: texts }: Texts,
  { name, title }: Named,
  token: string,
  keys: 'none' | 'asked' | 'missing',
): Confirmation {
  const problem = keys === 'missing' ? html`<p class="problem" id="keys-problem">${texts.rotateKeysMissing}</p>` : '';
  const invalid = keys === 'missing' ? ' aria-invalid="true" aria-describedby="keys-problem"' : '';
  const checkbox = html`<p>${texts.rotateKeys}</p>
<input type="hidden" name="asked_keys" value="yes">
<div class="field"><label class="tick"><input type="checkbox" name="replace_keys" value="yes"!${invalid}>${texts.rotateKeysLabel}</label>
!${problem}</div>`;
  return {
    heading: texts.rotateHeading(title),
    text: texts.rotateText,
    action: appliancePath(name, 'rotate-secret'),
    confirmLabel: texts.newSecret,
    cancelHref: appliancePath(name),
    fieldsHtml: html`<input type="hidden" name="form" value="${token}">!${keys === 'none' ? '' : checkbox}`,
  };
}

/**
 * Asks whether to remove an appliance; for one that waits for approval, that refuses its request.
 * @param keptConnection the title of its connection, if that stays because it is not only its own; null otherwise
 */
export function removalConfirmation(
  { appliance: texts, overview, connectionChoice }: Texts,
  { name, title, waitingForApproval }: ApplianceStatus,
  keptConnection: string | null,
): Confirmation {
  const removeText = keptConnection === null ? texts.removeText : connectionChoice.removeText(keptConnection);
  const isRejection = waitingForApproval !== undefined;
  return {
    heading: isRejection ? texts.rejectHeading(title) : texts.removeHeading(title),
    text: isRejection ? texts.rejectText : removeText,
    action: appliancePath(name, 'remove'),
    confirmLabel: isRejection ? overview.reject : texts.remove,
    cancelHref: appliancePath(name),
  };
}
