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

/** Entries kept in the page, and shown at first and with every press of the button. */
const MAX_ENTRIES = 1_000;
const PAGE_SIZE = 20;

const list = requireElement('#requests ol', HTMLElement);
const filter = requireElement('#endpoint-filter', HTMLSelectElement);
const olderButton = requireElement('#older', HTMLButtonElement);
let entries = new Map<number, LoggedRequest>();
/** Those that came as events since the log was last asked for: its answer may be older than they are. */
let since = new Map<number, LoggedRequest>();
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

/** The log: what clients sent and were answered, the newest first. */
export const requestsSection: PageSection = createSection<{ readonly requests: readonly LoggedRequest[] }>(
  'requests',
  (answer) => {
    entries = new Map([
      ...answer.requests.slice(-MAX_ENTRIES).map((entry) => [entry.number, entry] as const),
      ...since,
    ]);
    showEntries();
  },
  () => {
    since = new Map();
  },
);

/** Shows one more entry, or what became of one. */
export function addRequest(entry: LoggedRequest): void {
  for (const kept of [entries, since]) {
    kept.set(entry.number, entry);
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_ENTRIES) break;
      kept.delete(oldest);
    }
  }
  showEntries();
}

function showEntries(): void {
  const wanted = [...entries.values()]
    .filter(({ endpoint }) => filter.value === '' || endpoint === filter.value)
    .sort((one, other) => other.number - one.number);
  showList(list, wanted.slice(0, limit), ({ number }) => String(number), requestRow);
  olderButton.hidden = wanted.length <= limit;
  setEmptyMessageVisible('requests', wanted.length === 0);
}

function requestRow(entry: LoggedRequest): HTMLElement {
  const { time, endpoint, client, method, url, query, form, authorization, status, fault, answer } = entry;
  const who = client === null ? null : clientName(client);
  const struck = fault === undefined ? null : `fault ${fault}`;
  const about = [endpoint === 'unknown' ? url : null, form['grant_type'], who, struck].filter(
    (one) => typeof one === 'string',
  );
  const facts = createElement('dl', { class: 'facts' }, fact('path', url));
  if (client !== null) facts.append(fact('client', client));
  if (authorization !== null) facts.append(fact('authorization', authorization));
  for (const [name, value] of Object.entries(query)) facts.append(fact(`query: ${name}`, value));
  for (const [name, value] of Object.entries(form)) facts.append(fact(`form: ${name}`, value));
  for (const [name, value] of Object.entries(answer)) facts.append(fact(`answer: ${name}`, String(value)));
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

/** An answer's status, coloured by its class and named. @param status null: no answer arrived whole */
function statusBadge(status: number | null): HTMLElement {
  if (status === null) return createElement('span', { class: 'status s0' }, 'no answer');
  const kind = Math.floor(status / 100);
  return createElement(
    'span',
    { class: `status s${kind}` },
    `${status} ${consoleData.statusNames[status] ?? ''}`.trim(),
  );
}
