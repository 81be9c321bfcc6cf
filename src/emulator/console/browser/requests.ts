import type { LoggedRequest } from '../../http/logged-request.ts';
import { createElement, requireElement, showList } from './dom.ts';
import {
  clientName,
  consoleData,
  createSection,
  formatTimeOfDay,
  type PageSection,
  setEmptyMessageVisible,
} from './section.ts';

/** Entries kept in the page, and entries added to the list at first and with every press of the button. */
const MAX_ENTRIES = 1_000;
const PAGE_SIZE = 20;

const list = requireElement('#requests ol', HTMLElement);
const filter = requireElement('#endpoint-filter', HTMLSelectElement);
const olderButton = requireElement('#older', HTMLButtonElement);
let entries = new Map<number, LoggedRequest>();
/** Entries that arrived as events after the last request for the log; its response may be older than they are. */
let newer = new Map<number, LoggedRequest>();
let limit = PAGE_SIZE;

for (const endpoint of [...consoleData.endpoints, 'unknown']) {
  filter.append(createElement('option', { value: endpoint }, endpoint));
}
filter.addEventListener('change', () => {
  limit = PAGE_SIZE;
  showEntries();
});
olderButton.addEventListener('click', () => {
  limit += PAGE_SIZE;
  showEntries();
});

/** The log of requests and responses, newest first. */
export const requestsSection: PageSection = createSection<{ readonly requests: readonly LoggedRequest[] }>(
  'requests',
  (response) => {
    entries = new Map([
      ...response.requests.slice(-MAX_ENTRIES).map((entry) => [entry.number, entry] as const),
      ...newer,
    ]);
    showEntries();
  },
  () => {
    newer = new Map();
  },
);

/** Shows a new or changed entry. */
export function addRequest(entry: LoggedRequest): void {
  for (const map of [entries, newer]) {
    map.set(entry.number, entry);
    for (const oldest of map.keys()) {
      if (map.size <= MAX_ENTRIES) break;
      map.delete(oldest);
    }
  }
  showEntries();
}

function showEntries(): void {
  const selected = [...entries.values()]
    .filter(({ endpoint }) => filter.value === '' || endpoint === filter.value)
    .sort((one, other) => other.number - one.number);
  showList(list, selected.slice(0, limit), ({ number }) => String(number), requestRow);
  olderButton.hidden = selected.length <= limit;
  setEmptyMessageVisible('requests', selected.length === 0);
}

function requestRow(entry: LoggedRequest): HTMLElement {
  const { time, endpoint, client, method, url, query, form, media, authorization, status, fault, answer } = entry;
  const clientText = client === null ? null : clientName(client);
  const faultText = fault === undefined ? null : `fault ${fault}`;
  const about = [
    endpoint === 'unknown' ? url : null,
    form['grant_type'],
    clientText,
    faultText,
    answer['error'],
  ].filter((text) => typeof text === 'string');
  const facts = createElement('dl', { class: 'facts' }, fact('path', url));
  if (client !== null) facts.append(fact('client', client));
  if (media !== undefined) facts.append(fact('media type', media));
  if (authorization !== null) facts.append(fact('authorization', authorization));
  for (const [name, value] of Object.entries(query)) facts.append(fact(`query: ${name}`, value));
  for (const [name, value] of Object.entries(form)) facts.append(fact(`form: ${name}`, value));
  for (const [name, value] of Object.entries(answer)) facts.append(fact(`response: ${name}`, String(value)));
  return createElement(
    'li',
    {},
    createElement(
      'details',
      {},
      createElement(
        'summary',
        {},
        createElement('time', { datetime: time, class: 'quiet' }, formatTimeOfDay(time)),
        createElement('span', { class: 'what' }, `${method} ${endpoint}`),
        createElement('span', { class: 'about quiet' }, about.join(' · ')),
        statusBadge(status),
      ),
      facts,
    ),
  );
}

function fact(name: string, value: string): HTMLElement {
  return createElement('div', {}, createElement('dt', {}, name), createElement('dd', { class: 'value' }, value));
}

/**
 * A status with its reason phrase, coloured by its class.
 * @param status null: the response was not delivered completely
 */
function statusBadge(status: number | null): HTMLElement {
  if (status === null) return createElement('span', { class: 'status s0' }, 'no response');
  const kind = Math.floor(status / 100);
  return createElement(
    'span',
    { class: `status s${kind}` },
    `${status} ${consoleData.statusNames[status] ?? ''}`.trim(),
  );
}
