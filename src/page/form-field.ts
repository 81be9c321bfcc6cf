import { html } from 'ghtml';
import { withCopyButton } from './elements.ts';
import type { Texts } from './texts/en.ts';

/** A text field or a list in a form. */
interface FormField {
  readonly id: string;
  readonly label: string;
  readonly hint: string | null;
  /** What is wrong with what was entered; left out if nothing is. */
  readonly problem?: string | undefined;
  /** The page's texts, if a button copies what the field contains; left out without one. */
  readonly copied?: Texts | undefined;
  /** Hidden while the form's list of logins has another choice than an appliance's own login. */
  readonly onlyForOwn?: boolean;
}

/** @param control makes the control's HTML from its attributes @returns HTML */
function renderField(
  { id, label, hint, problem, onlyForOwn = false }: FormField,
  control: (attributes: string) => string,
): string {
  const descriptionIds = [
    ...(problem === undefined ? [] : [`${id}-problem`]),
    ...(hint === null ? [] : [`${id}-hint`]),
  ].join(' ');
  const describedBy = descriptionIds === '' ? '' : ` aria-describedby="${descriptionIds}"`;
  return html`<div class="field${onlyForOwn ? ' for-own' : ''}"><label for="${id}" id="${id}-label">${label}</label>
!${control(describedBy + (problem === undefined ? '' : ' aria-invalid="true"'))}
!${problem === undefined ? '' : html`<p class="problem" id="${id}-problem">${problem}</p>`}
!${hint === null ? '' : html`<p class="hint" id="${id}-hint">${hint}</p>`}</div>`;
}

/** @param maxLength in characters: more than any valid value, so that a longer one is told and not cut @returns HTML */
export function renderTextField(field: FormField, value: string, isFocused: boolean, maxLength = 1000): string {
  const { id, copied } = field;
  return renderField(field, (attributes) => {
    const input = html`<input id="${id}" name="${id}" value="${value}" maxlength="${maxLength}" autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false"!${attributes}!${isFocused ? ' autofocus' : ''}>`;
    return copied === undefined ? input : withCopyButton(copied, input, id, `${id}-label`);
  });
}

/** A list to choose from. @param name of the form's member @returns HTML */
export function renderSelectField(
  field: FormField,
  name: string,
  options: readonly { readonly value: string; readonly text: string }[],
  selected: string,
): string {
  const items = options.map(
    ({ value, text }) => html`<option value="${value}"!${value === selected ? ' selected' : ''}>${text}</option>`,
  );
  return renderField(
    field,
    (attributes) => html`<select id="${field.id}" name="${name}"!${attributes}>!${items}</select>`,
  );
}
