import { change } from './api.ts';
import { find, make, showList } from './dom.ts';
import { type Part, part } from './part.ts';

type Value = string | number | boolean | null;

/** A switch of the emulator, and how a person changes it. */
type Field =
  | { readonly kind: 'choice'; readonly label: string; readonly choices: readonly (readonly [Value, string])[] }
  /** `empty`: what no value at all means. */
  | { readonly kind: 'number' | 'text'; readonly label: string; readonly unit: string; readonly empty?: string };

const YES_OR_NO: readonly (readonly [Value, string])[] = [
  [true, 'yes'],
  [false, 'no'],
];

/** By the API's names, in the order of the page. A switch that is not here is not on the page. */
const FIELDS: Readonly<Record<string, Field>> = {
  on_reuse: {
    kind: 'choice',
    label: 'A used refresh token',
    choices: [
      ['refuse', 'is refused'],
      ['revoke-family', 'revokes its whole grant'],
    ],
  },
  refresh_grace: { kind: 'number', label: 'It stays good for', unit: 'more generations' },
  refresh_grace_time: { kind: 'number', label: 'It gets the same answer again for', unit: 'seconds' },
  basic: {
    kind: 'choice',
    label: 'HTTP Basic at the token endpoint',
    choices: [
      ['accept', 'is accepted'],
      ['refuse', 'is refused'],
    ],
  },
  error_body: {
    kind: 'choice',
    label: 'Error answers hold',
    choices: [
      ['json', 'JSON'],
      ['html', 'a web page'],
      ['empty', 'nothing'],
    ],
  },
  relay_refusal: { kind: 'choice', label: 'A refused login is told to the redirect_url', choices: YES_OR_NO },
  code_url_after_exchange: {
    kind: 'choice',
    label: 'code_url, after the exchange',
    choices: [
      ['gone', 'answers 404'],
      ['served', 'goes on serving the code'],
    ],
  },
  refuse_redirect_urls: {
    kind: 'text',
    label: 'Refuse a redirect_url like',
    unit: 'a regular expression',
    empty: 'none',
  },
  auto_login: { kind: 'choice', label: 'Opening the link logs in at once', choices: YES_OR_NO },
  forget_logins: { kind: 'choice', label: 'Browsers are asked for the password each time', choices: YES_OR_NO },
  token_lifetime: { kind: 'number', label: 'Access tokens live', unit: 'seconds' },
  refresh_lifetime: { kind: 'number', label: 'Unused refresh tokens live', unit: 'seconds', empty: 'for ever' },
  grant_lifetime: { kind: 'number', label: 'Grants live', unit: 'seconds', empty: 'for ever' },
  code_lifetime: { kind: 'number', label: 'Codes live', unit: 'seconds' },
  state_lifetime: { kind: 'number', label: 'Links live', unit: 'seconds' },
  id_token: { kind: 'choice', label: 'Token responses tell who has logged in (id_token)', choices: YES_OR_NO },
  rate_limit: { kind: 'number', label: 'Requests of each kind a client may send', unit: '0 for any number' },
  rate_limit_window: { kind: 'number', label: 'In a time of', unit: 'seconds' },
};

const form = find('#settings form', HTMLFormElement);
form.addEventListener('submit', (event) => event.preventDefault());

/** The switches, each changed as soon as another value is chosen. */
export const settings: Part = part<Readonly<Record<string, Value>>>(
  'settings',
  () => 'settings',
  (answer) => {
    const known = Object.entries(FIELDS).flatMap(([name, field]) => {
      const value = answer[name];
      return value === undefined ? [] : [{ name, field, value }];
    });
    showList(form, known, ({ name }) => name, row);
  },
);

function row({ name, field, value }: { readonly name: string; readonly field: Field; readonly value: Value }) {
  const control = field.kind === 'choice' ? choice(field.choices, value) : input(field, value);
  control.name = name;
  control.addEventListener('change', () => {
    const to =
      field.kind === 'choice' ? (field.choices[Number(control.value)]?.[0] ?? null) : entered(field, control.value);
    void change('PATCH', 'settings', { [name]: to }, `${name} was changed.`).then((done) => {
      if (!done && control instanceof HTMLInputElement) control.value = control.defaultValue;
    });
  });
  const unit = field.kind === 'choice' ? null : make('small', {}, field.unit);
  return make('label', { class: 'setting' }, make('span', {}, field.label, unit), control);
}

function choice(choices: readonly (readonly [Value, string])[], value: Value): HTMLSelectElement {
  const options = choices.map(([each, label], index) =>
    make('option', { value: String(index), selected: each === value ? '' : null }, label),
  );
  return make('select', {}, ...options);
}

function input({ kind, empty }: Exclude<Field, { readonly kind: 'choice' }>, value: Value): HTMLInputElement {
  return make('input', {
    ...(kind === 'number' ? { type: 'number', inputmode: 'numeric', min: '0', step: 'any' } : { type: 'text' }),
    placeholder: empty ?? null,
    autocomplete: 'off',
    spellcheck: 'false',
    value: value === null ? '' : String(value),
  });
}

/** What was typed, as the API wants it. */
function entered({ kind }: Field, text: string): Value {
  if (text === '') return null;
  return kind === 'number' ? Number(text) : text;
}
