import type { SettingControl } from '../page.ts';
import { callApi } from './api.ts';
import { createElement, requireElement, showList } from './dom.ts';
import { consoleData, createSection, type PageSection } from './section.ts';

type Value = string | number | boolean | null;

const form = requireElement('#settings form', HTMLFormElement);
form.addEventListener('submit', (event) => event.preventDefault());

/** The settings; each is changed as soon as another value is chosen. */
export const settingsSection: PageSection = createSection<Readonly<Record<string, Value>>>('settings', (response) => {
  const settings = consoleData.settings.map((definition) => ({
    ...definition,
    value: response[definition.name] ?? null,
  }));
  showList(form, settings, ({ name }) => name, settingRow);
});

function settingRow({ name, description, values, nothing, value }: SettingControl & { readonly value: Value }) {
  const choices = values.kind === 'boolean' ? ['true', 'false'] : values.kind === 'choice' ? values.choices : null;
  const text = value === null ? '' : String(value);
  const control = choices === null ? input(values, nothing, text) : select(choices, text);
  control.name = name;
  control.addEventListener('change', () => {
    const change = { [name]: parseValue(values, control.value) };
    void callApi('PATCH', 'settings', change, `${name} was changed.`).then((done) => {
      if (!done && control instanceof HTMLInputElement) control.value = control.defaultValue;
    });
  });
  const about = createElement(
    'small',
    {},
    `${description}${UNITS['syntax' in values ? values.syntax : values.kind] ?? ''}`,
  );
  return createElement('label', { class: 'setting' }, createElement('span', {}, name, about), control);
}

/** What is added to the descriptions of settings of some kinds. */
const UNITS: Readonly<Record<string, string>> = {
  seconds: ', in seconds',
  scopes: ', with one space between two',
  requirements: ', with one space between two',
};

function select(choices: readonly string[], selected: string): HTMLSelectElement {
  const options = choices.map((value) =>
    createElement('option', { value, selected: value === selected ? '' : null }, value),
  );
  return createElement('select', {}, ...options);
}

function input({ kind }: SettingControl['values'], nothing: string | undefined, value: string): HTMLInputElement {
  return createElement('input', {
    ...(isText(kind) ? { type: 'text' } : { type: 'number', inputmode: 'numeric', min: '0', step: 'any' }),
    placeholder: nothing ?? null,
    autocomplete: 'off',
    spellcheck: 'false',
    value,
  });
}

/** The value of a control, for the API. */
function parseValue({ kind }: SettingControl['values'], text: string): Value {
  if (kind === 'boolean') return text === 'true';
  if (text === '') return null;
  return kind === 'choice' || isText(kind) ? text : Number(text);
}

function isText(kind: SettingControl['values']['kind']): boolean {
  return kind === 'regular expression' || kind === 'text';
}
