import { change } from './api.ts';
import { find, make } from './dom.ts';
import { FAULT_KINDS, type FaultField, oftenFields } from './fault-kinds.ts';
import { start } from './part.ts';

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
    const fault = entered();
    if (fault !== null) void change('POST', 'faults', fault, 'The fault is in force.');
  });
  showFields();
}

/** The fields of the chosen kind. */
function showFields(): void {
  const { strikes, fields } = FAULT_KINDS[kind.value] ?? { strikes: 'endpoint', fields: [] };
  const where =
    strikes === 'endpoint' ? requestFields() : [labelled('Origin', choice('origin', originsOf(kind.value)))];
  const often = kind.value === 'origin_down' ? [] : oftenFields(strikes);
  rest.replaceChildren(...where, ...[...often, ...fields].map(input));
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
    ['token', ...start.endpoints.filter((name) => name !== 'token'), '*'].map((name) => [
      name,
      name === '*' ? 'any' : name,
    ]),
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

/** The form as the API takes it; what is empty or not shown is left out. Null where the person is told what is wrong. */
function entered(): Record<string, unknown> | null {
  const members: Record<string, unknown> = {};
  for (const control of form.elements) {
    if (!isField(control)) continue;
    const { name, value, type } = control;
    if (control.closest('[hidden]') !== null) continue;
    if (control instanceof HTMLTextAreaElement && control.dataset['holds'] === 'headers') {
      const headers = headersOf(value);
      control.setCustomValidity(headers === null ? 'One header a line, as Name: value, and each name once' : '');
      if (!control.reportValidity()) return null;
      if (value !== '') members[name] = headers;
    } else if (type === 'checkbox' && control instanceof HTMLInputElement) members[name] = control.checked;
    else if (name === 'times' && value === '') members[name] = null;
    else if (value !== '') members[name] = type === 'number' ? Number(value) : value;
  }
  return members;
}

function isField(control: Element): control is HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  return (
    control instanceof HTMLInputElement ||
    control instanceof HTMLSelectElement ||
    control instanceof HTMLTextAreaElement
  );
}

function input({ name, label, type, value, min, max, hint }: FaultField): HTMLElement {
  if (type === 'checkbox')
    return make('label', { class: 'check' }, make('input', { name, type }), make('span', {}, label));
  if (type === 'lines' || type === 'headers') {
    const text = make('textarea', {
      name,
      rows: '2',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: hint ?? null,
      'data-holds': type,
    });
    text.addEventListener('input', () => text.setCustomValidity(''));
    return make('label', { class: 'wide' }, make('span', {}, label), text);
  }
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
  control.required = value !== undefined && name !== 'times';
  return labelled(label, control);
}

function choice(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return make('select', { name }, ...options.map(([value, label]) => make('option', { value }, label)));
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
