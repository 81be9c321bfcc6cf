import { change } from './api.ts';
import { find, make } from './dom.ts';
import { FAULT_KINDS, type FaultField } from './fault-kinds.ts';
import { start } from './start.ts';

const ENDPOINTS = ['token', 'config', 'code/get', 'code/set', 'authorize', 'whoami', '*'];

const form = find('#add-fault', HTMLFormElement);
const rest = make('div', { class: 'fields' });
const kind = choice(
  'kind',
  Object.entries(FAULT_KINDS).map(([name, { label }]) => [name, label]),
);

/** Lets a person add a fault: what, where, how often, and what goes with it. */
export function offerFaults(): void {
  const title = make('h3', {}, 'Add a fault');
  form.append(title, labelled('What happens', kind), rest, make('button', { class: 'main' }, 'Add the fault'));
  kind.addEventListener('change', showFields);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void change('POST', 'faults', entered(), 'The fault is in force.');
  });
  showFields();
}

/** The fields of the chosen kind. */
function showFields(): void {
  const { strikes, fields } = FAULT_KINDS[kind.value] ?? { strikes: 'endpoint', fields: [] };
  const where =
    strikes === 'endpoint' ? requestFields() : [labelled('Origin', choice('origin', originsOf(kind.value)))];
  const often =
    kind.value === 'origin_down'
      ? []
      : [input({ name: 'times', label: 'How often (empty: always)', type: 'number', value: '1', min: 1 })];
  rest.replaceChildren(...where, ...often, ...fields.map(input));
}

/** The base origin is first where that is useful: it takes this page with it when it goes down. */
function originsOf(name: string): [string, string][] {
  const origins: [string, string][] = [
    ['base', 'base_url'],
    ['frontend', 'frontend_url'],
  ];
  return name === 'origin_down' ? origins.toReversed() : origins;
}

function requestFields(): HTMLElement[] {
  const endpoint = choice(
    'endpoint',
    ENDPOINTS.map((name) => [name, name === '*' ? 'any' : name]),
  );
  const grantType = labelled(
    'Grant type',
    choice('grant_type', [
      ['', 'any'],
      ['authorization_code', 'authorization_code'],
      ['refresh_token', 'refresh_token'],
    ]),
  );
  endpoint.addEventListener('change', () => {
    grantType.hidden = endpoint.value !== 'token';
  });
  const clients: [string, string][] = start.clients.map(({ id, name }) => [id, name]);
  const client = clients.length < 2 ? [] : [labelled('Client', choice('client', [['', 'any'], ...clients]))];
  return [labelled('Endpoint', endpoint), grantType, ...client];
}

/** The form as the API takes it; what is empty or not shown is left out. */
function entered(): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const control of form.elements) {
    if (!(control instanceof HTMLInputElement || control instanceof HTMLSelectElement)) continue;
    const { name, value, type } = control;
    if (control.closest('[hidden]') !== null) continue;
    if (type === 'checkbox' && control instanceof HTMLInputElement) members[name] = control.checked;
    else if (name === 'times' && value === '') members[name] = null;
    else if (value !== '') members[name] = type === 'number' ? Number(value) : value;
  }
  return members;
}

function input({ name, label, type, value, min }: FaultField): HTMLElement {
  if (type === 'checkbox')
    return make('label', { class: 'check' }, make('input', { name, type }), make('span', {}, label));
  const control = make('input', {
    name,
    type,
    autocomplete: 'off',
    value: value ?? '',
    min: min === undefined ? null : String(min),
  });
  if (type === 'number') control.step = 'any';
  control.required = value !== undefined && name !== 'times';
  return labelled(label, control);
}

function choice(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return make('select', { name }, ...options.map(([value, label]) => make('option', { value }, label)));
}

function labelled(label: string, control: HTMLElement): HTMLElement {
  return make('label', {}, make('span', {}, label), control);
}
