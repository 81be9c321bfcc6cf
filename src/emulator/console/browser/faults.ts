import type { FaultControl } from '../page.ts';
import { callApi } from './api.ts';
import { createButton, createElement, requireElement, showList } from './dom.ts';
import { consoleData, createSection, type PageSection, setEmptyMessageVisible } from './section.ts';

/** A fault in an API response, including the members of its kind. */
interface Fault {
  readonly id: string;
  readonly kind: string;
  readonly hits: number;
  /** Remaining hits; null: no limit. */
  readonly left: number | null;
  readonly [member: string]: unknown;
}

/** Members that are shown elsewhere, and values that are not worth showing because they are the default. */
const HIDDEN_MEMBERS = new Set(['id', 'kind', 'hits', 'left', 'endpoint', 'origin', 'times']);
const DEFAULT_VALUES: Readonly<Record<string, unknown>> = {
  probability: 1,
  every: 1,
  commit: false,
  body: '',
  seconds: null,
};

const list = requireElement('#faults ul', HTMLElement);
const clearButton = requireElement('#clear-faults', HTMLButtonElement);
clearButton.addEventListener('click', () => void callApi('DELETE', 'faults', null, 'All faults were removed.'));

/** The faults and their counts. */
export const faultsSection: PageSection = createSection<{ readonly faults: readonly Fault[] }>('faults', (response) => {
  showList(list, response.faults.toReversed(), ({ id }) => id, faultRow);
  setEmptyMessageVisible('faults', response.faults.length === 0);
  clearButton.hidden = response.faults.length === 0;
});

function faultRow(fault: Fault): HTMLElement {
  const { id, kind, hits, left } = fault;
  const where = String(fault['endpoint'] ?? fault['origin'] ?? '');
  const label = consoleData.faultKinds.find(({ name }) => name === kind)?.label ?? kind;
  const what = `${where === '*' ? 'any endpoint' : where}: ${label}`;
  const details = Object.entries(fault)
    .filter(
      ([name, value]) => !HIDDEN_MEMBERS.has(name) && value !== DEFAULT_VALUES[name] && JSON.stringify(value) !== '{}',
    )
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const count = `${hits} ${hits === 1 ? 'hit' : 'hits'}, ${left === null ? 'no limit' : left === 0 ? 'used up' : `${left} left`}`;
  return createElement(
    'li',
    { class: 'entry' },
    createElement(
      'div',
      {},
      createElement('b', {}, what),
      createElement('p', { class: 'quiet' }, [`fault ${id}`, count, ...details].join(' · ')),
    ),
    createButton(
      'Remove',
      () => callApi('DELETE', `faults/${encodeURIComponent(id)}`, null, 'The fault was removed.'),
      {
        'aria-label': `Remove the fault ${what}`,
      },
    ),
  );
}

/** A control of the form, with its value for the API; undefined is left out. */
interface FormField {
  readonly name: string;
  readonly element: HTMLElement;
  value(): unknown;
}

/** Sets up the form that adds a fault. */
export function setUpFaultForm(): void {
  const form = requireElement('#add-fault', HTMLFormElement);
  const kind = choiceField(
    'kind',
    'What happens',
    consoleData.faultKinds.map(({ name, label }) => [name, label]),
  );
  const container = createElement('div', { class: 'fields' });
  let fields: readonly FormField[] = [];
  const showFields = () => {
    const chosen = consoleData.faultKinds.find(({ name }) => name === kind.value());
    if (chosen === undefined) return;
    fields = [
      ...(chosen.target === 'requests' ? requestFields() : [originField(chosen)]),
      ...chosen.fields.map(createField),
    ];
    container.replaceChildren(...fields.map(({ element }) => element));
  };
  form.append(
    createElement('h3', {}, 'Add a fault'),
    kind.element,
    container,
    createElement('button', { class: 'main' }, 'Add the fault'),
  );
  kind.element.addEventListener('change', showFields);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const filled = [kind, ...fields].filter(({ element }) => !element.hidden);
    const fault = Object.fromEntries(filled.map((one) => [one.name, one.value()]));
    void callApi('POST', 'faults', fault, 'The fault was added.');
  });
  showFields();
}

/** To take an origin down, the frontend origin is the default: this page is on the base origin. */
function originField({ target }: FaultControl): FormField {
  const origins = [
    ['base', 'base_url'],
    ['frontend', 'frontend_url'],
  ] as const;
  return choiceField('origin', 'Origin', target === 'origin' ? origins.toReversed() : origins);
}

function requestFields(): FormField[] {
  const endpoints = ['token', ...consoleData.endpoints.filter((name) => name !== 'token')];
  const endpoint = choiceField('endpoint', 'Endpoint', [
    ...endpoints.map((name) => [name, name] as const),
    ['*', 'any'],
  ]);
  const grantTypes = consoleData.grantTypes.map((name) => [name, name] as const);
  const grantType = choiceField('grant_type', 'Grant type', [['', 'any'], ...grantTypes]);
  endpoint.element.addEventListener('change', () => {
    grantType.element.hidden = endpoint.value() !== 'token';
  });
  const clients = consoleData.clients.map(({ id, name }) => [id, name] as const);
  return [
    endpoint,
    grantType,
    ...(clients.length < 2 ? [] : [choiceField('client', 'Client', [['', 'any'], ...clients])]),
  ];
}

/** A choice between values, each with its text; an empty value is left out of the request. */
function choiceField(name: string, label: string, options: readonly (readonly [string, string])[]): FormField {
  const control = createElement(
    'select',
    { name },
    ...options.map(([value, text]) => createElement('option', { value }, text)),
  );
  return { name, element: labelled(label, control), value: () => control.value || undefined };
}

function createField(field: FaultControl['fields'][number]): FormField {
  const { name, label, type } = field;
  if (type === 'checkbox') {
    const control = createElement('input', { name, type });
    const element = createElement('label', { class: 'check' }, control, createElement('span', {}, label));
    return { name, element, value: () => control.checked };
  }
  return type === 'lines' || type === 'headers' ? textField(field) : inputField(field);
}

/** Text of several lines, or headers, one per line. */
function textField({ name, label, type, hint }: FaultControl['fields'][number]): FormField {
  const attributes = { name, rows: '2', autocomplete: 'off', spellcheck: 'false', placeholder: hint ?? null };
  const control = createElement('textarea', attributes);
  const element = labelled(label, control);
  element.className = 'wide';
  if (type === 'lines') return { name, element, value: () => control.value || undefined };
  control.addEventListener('input', () => {
    const isValid = parseHeaders(control.value) !== null;
    control.setCustomValidity(isValid ? '' : 'Enter one header per line as Name: value, each name only once');
  });
  return { name, element, value: () => parseHeaders(control.value) ?? undefined };
}

function inputField({ name, label, type, value, empty, min, max, hint }: FaultControl['fields'][number]): FormField {
  const control = createElement('input', {
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
  const filled = () => (type === 'number' ? Number(control.value) : control.value);
  return { name, element: labelled(label, control), value: () => (control.value === '' ? whenEmpty : filled()) };
}

function labelled(label: string, control: HTMLElement): HTMLElement {
  return createElement('label', {}, createElement('span', {}, label), control);
}

/** Parses headers, one `Name: value` per line; null if a line is malformed or a name is repeated. */
function parseHeaders(text: string): Readonly<Record<string, string>> | null {
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
