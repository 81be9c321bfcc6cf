import { html } from 'ghtml';
import type { ApplianceStatus } from '../../core/administration.ts';
import type { Question } from '../questions.ts';
import type { Texts } from '../texts/en.ts';
import { appliancePath } from './appliance-path.ts';

/**
 * Whether an appliance is to get a new secret.
 * @param token of the form
 * @param keys whether it has keys of its own, and is asked about them; `missing`: they were not ticked
 */
export function rotateQuestion(
  { appliance: texts }: Texts,
  name: string,
  token: string,
  keys: 'none' | 'asked' | 'missing',
): Question {
  const problem = keys === 'missing' ? html`<p class="problem" id="keys-problem">${texts.rotateKeysMissing}</p>` : '';
  const invalid = keys === 'missing' ? ' aria-invalid="true" aria-describedby="keys-problem"' : '';
  const tick = html`<p>${texts.rotateKeys}</p>
<input type="hidden" name="asked_keys" value="yes">
<div class="field"><label class="tick"><input type="checkbox" name="replace_keys" value="yes"!${invalid}>${texts.rotateKeysTick}</label>
!${problem}</div>`;
  return {
    heading: texts.rotateSure(name),
    text: texts.rotateText,
    action: appliancePath(name, 'rotate-secret'),
    yes: texts.newSecret,
    back: appliancePath(name),
    fields: html`<input type="hidden" name="form" value="${token}">!${keys === 'none' ? '' : tick}`,
  };
}

/** Whether an appliance's grant is to be forgotten. */
export function unpairQuestion({ appliance: texts }: Texts, { name }: ApplianceStatus): Question {
  return {
    heading: texts.disconnectSure(name),
    text: texts.disconnectText,
    action: appliancePath(name, 'unpair'),
    yes: texts.disconnect,
    back: appliancePath(name),
  };
}

/** Whether an appliance is to be removed; one that waits to be approved is refused by that. */
export function removeQuestion(
  { appliance: texts, overview }: Texts,
  { name, waitingForApproval }: ApplianceStatus,
): Question {
  const isRefused = waitingForApproval !== undefined;
  return {
    heading: isRefused ? texts.refuseSure(name) : texts.removeSure(name),
    text: isRefused ? texts.refuseText : texts.removeText,
    action: appliancePath(name, 'remove'),
    yes: isRefused ? overview.refuse : texts.remove,
    back: appliancePath(name),
  };
}
