import type { SettingControl } from '../page.ts';
import { callApi } from './api.ts';
import { createElement, requireElement, showList } from './dom.ts';
import { consoleData, createSection, type PageSection } from './section.ts';

type Value = string | number | boolean | null;
type Choices = readonly (readonly [Value, string])[];

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
  const choices = choicesOf(values);
  const control = choices === null ? input(values, nothing, value) : select(choices, value);
  control.name = name;
  control.addEventListener('change', () => {
    const newValue =
      choices === null ? parseInput(values, control.value) : (choices[Number(control.value)]?.[0] ?? null);
    void callApi('PATCH', 'settings', { [name]: newValue }, `${name} was changed.`).then((done) => {
      if (!done && control instanceof HTMLInputElement) control.value = control.defaultValue;
    });
  });
  const text = createElement('small', {}, `${description}${UNITS[values.kind] ?? ''}`);
  return createElement('label', { class: 'setting' }, createElement('span', {}, name, text), control);
}

/** The values of a setting that has a few, each with its text; null for other settings. */
function choicesOf(values: SettingControl['values']): Choices | null {
  if (values.kind === 'choice') return values.choices.map((one) => [one, one]);
  return values.kind === 'boolean'
    ? [
        [true, 'yes'],
        [false, 'no'],
      ]
    : null;
}

/** What is added to the descriptions of settings of some kinds. */
const UNITS: Readonly<Record<string, string>> = { seconds: ', in seconds', text: ', with one space between two' };

function select(choices: Choices, value: Value): HTMLSelectElement {
  const options = choices.map(([choice, label], index) =>
    createElement('option', { value: String(index), selected: choice === value ? '' : null }, label),
  );
  return createElement('select', {}, ...options);
}

function input({ kind }: SettingControl['values'], nothing: string | undefined, value: Value): HTMLInputElement {
  const text = isText(kind);
  return createElement('input', {
    ...(text ? { type: 'text' } : { type: 'number', inputmode: 'numeric', min: '0', step: 'any' }),
    placeholder: nothing ?? null,
    autocomplete: 'off',
    spellcheck: 'false',
    value: value === null ? '' : String(value),
  });
}

/** The value of an input, for the API. */
function parseInput({ kind }: SettingControl['values'], text: string): Value {
  if (text === '') return null;
  return isText(kind) ? text : Number(text);
}

function isText(kind: SettingControl['values']['kind']): boolean {
  return kind === 'regular expression' || kind === 'text';
}
