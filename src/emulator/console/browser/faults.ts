import type { FaultControl } from '../page.ts';
import { change } from './api.ts';
import { button, find, make, showList } from './dom.ts';
import { type Part, part, showEmpty, start } from './part.ts';

/** A fault as the API shows it; what goes with its kind is among the members. */
interface Fault {
  readonly id: string;
  readonly kind: string;
  readonly hits: number;
  /** How often it strikes yet; null: until it is removed. */
  readonly left: number | null;
  readonly [member: string]: unknown;
}

/** Members that have a place of their own, or say nothing with the value that they mostly have. */
const NOT_DETAILS = new Set(['id', 'kind', 'hits', 'left', 'endpoint', 'origin', 'times']);
const USUAL: Readonly<Record<string, unknown>> = { probability: 1, every: 1, commit: false, body: '', seconds: null };

const list = find('#faults ul', HTMLElement);
const clear = find('#clear-faults', HTMLButtonElement);
clear.addEventListener('click', () => void change('DELETE', 'faults', null, 'There are no faults any more.'));

/** The faults, and what became of each. */
export const faults: Part = part<{ readonly faults: readonly Fault[] }>('faults', (answer) => {
  showList(list, answer.faults.toReversed(), ({ id }) => id, row);
  showEmpty('faults', answer.faults.length === 0);
  clear.hidden = answer.faults.length === 0;
});

function row(fault: Fault): HTMLElement {
  const { id, kind, hits, left } = fault;
  const where = String(fault['endpoint'] ?? fault['origin'] ?? '');
  const label = start.faultKinds.find(({ name }) => name === kind)?.label ?? kind;
  const what = `${where === '*' ? 'any endpoint' : where}: ${label}`;
  const details = Object.entries(fault)
    .filter(([name, value]) => !NOT_DETAILS.has(name) && value !== USUAL[name] && JSON.stringify(value) !== '{}')
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const count = `${hits} ${hits === 1 ? 'hit' : 'hits'}, ${left === null ? 'goes on' : left === 0 ? 'spent' : `${left} left`}`;
  return make(
    'li',
    { class: 'entry' },
    make('div', {}, make('b', {}, what), make('p', { class: 'quiet' }, [`fault ${id}`, count, ...details].join(' · '))),
    button('Remove', () => change('DELETE', `faults/${encodeURIComponent(id)}`, null, 'The fault is removed.'), {
      'aria-label': `Remove the fault ${what}`,
    }),
  );
}

/** A control of the form, and what it holds as the API takes it; undefined is left out. */
interface Field {
  readonly name: string;
  readonly element: HTMLElement;
  value(): unknown;
}

/** Lets a person add a fault: what, where, how often, and what goes with it. */
export function offerFaults(): void {
  const form = find('#add-fault', HTMLFormElement);
  const kind = choice(
    'kind',
    'What happens',
    start.faultKinds.map(({ name, label }) => [name, label]),
  );
  const rest = make('div', { class: 'fields' });
  let fields: readonly Field[] = [];
  const showFields = () => {
    const chosen = start.faultKinds.find(({ name }) => name === kind.value());
    if (chosen === undefined) return;
    fields = [
      ...(chosen.strikes === 'requests' ? requestFields() : [originField(chosen)]),
      ...chosen.fields.map(field),
    ];
    rest.replaceChildren(...fields.map(({ element }) => element));
  };
  form.append(make('h3', {}, 'Add a fault'), kind.element, rest, make('button', { class: 'main' }, 'Add the fault'));
  kind.element.addEventListener('change', showFields);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const filled = [kind, ...fields].filter(({ element }) => !element.hidden);
    const fault = Object.fromEntries(filled.map((one) => [one.name, one.value()]));
    void change('POST', 'faults', fault, 'The fault is in force.');
  });
  showFields();
}

/** The base origin is first where that is useful: it takes this page with it when it goes down. */
function originField({ strikes }: FaultControl): Field {
  const origins = [
    ['base', 'base_url'],
    ['frontend', 'frontend_url'],
  ] as const;
  return choice('origin', 'Origin', strikes === 'origin' ? origins.toReversed() : origins);
}

function requestFields(): Field[] {
  const endpoints = ['token', ...start.endpoints.filter((name) => name !== 'token')];
  const endpoint = choice('endpoint', 'Endpoint', [...endpoints.map((name) => [name, name] as const), ['*', 'any']]);
  const grantTypes = ['authorization_code', 'refresh_token'].map((name) => [name, name] as const);
  const grantType = choice('grant_type', 'Grant type', [['', 'any'], ...grantTypes]);
  endpoint.element.addEventListener('change', () => {
    grantType.element.hidden = endpoint.value() !== 'token';
  });
  const clients = start.clients.map(({ id, name }) => [id, name] as const);
  return [endpoint, grantType, ...(clients.length < 2 ? [] : [choice('client', 'Client', [['', 'any'], ...clients])])];
}

/** One of some values, each with the words for it; the empty one is left out. */
function choice(name: string, label: string, options: readonly (readonly [string, string])[]): Field {
  const control = make('select', { name }, ...options.map(([value, text]) => make('option', { value }, text)));
  return { name, element: labelled(label, control), value: () => control.value || undefined };
}

function field(declared: FaultControl['fields'][number]): Field {
  const { name, label, type } = declared;
  if (type === 'checkbox') {
    const control = make('input', { name, type });
    const element = make('label', { class: 'check' }, control, make('span', {}, label));
    return { name, element, value: () => control.checked };
  }
  return type === 'lines' || type === 'headers' ? textField(declared) : inputField(declared);
}

/** Text of several lines, or headers, one a line. */
function textField({ name, label, type, hint }: FaultControl['fields'][number]): Field {
  const attributes = { name, rows: '2', autocomplete: 'off', spellcheck: 'false', placeholder: hint ?? null };
  const control = make('textarea', attributes);
  const element = labelled(label, control);
  element.className = 'wide';
  if (type === 'lines') return { name, element, value: () => control.value || undefined };
  control.addEventListener('input', () => {
    const isGood = headersOf(control.value) !== null;
    control.setCustomValidity(isGood ? '' : 'One header a line, as Name: value, and each name once');
  });
  return { name, element, value: () => headersOf(control.value) ?? undefined };
}

function inputField({ name, label, type, value, empty, min, max, hint }: FaultControl['fields'][number]): Field {
  const control = make('input', {
    name,
    type,
    autocomplete: 'off',
    value: value ?? '',
    min: min === undefined ? null : String(min),
    max: max === undefined ? null : String(max),
    placeholder: hint ?? null,
  });
  if (type === 'number') control.step = 'any';
  control.required = value !== undefined && empty === undefined;
  const whenEmpty = empty === 'null' ? null : undefined;
  const held = () => (type === 'number' ? Number(control.value) : control.value);
  return { name, element: labelled(label, control), value: () => (control.value === '' ? whenEmpty : held()) };
}

function labelled(label: string, control: HTMLElement): HTMLElement {
  return make('label', {}, make('span', {}, label), control);
}

/** Headers as a person writes them, one `Name: value` a line; null where a line is none, or a name comes twice. */
function headersOf(text: string): Readonly<Record<string, string>> | null {
  const headers = new Map<string, string>();
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === '' || headers.has(name.toLowerCase())) return null;
    headers.set(name.toLowerCase(), line.slice(colon + 1).trim());
  }
  return Object.fromEntries(headers);
}
