import type { LoggedRequest } from '../../http/logged-request.ts';
import { find, make, showList } from './dom.ts';
import { clientName, clockTime, type Part, part, showEmpty, start } from './part.ts';

/** Entries kept in the page, and shown at first and with every press of the button. */
const MAX_ENTRIES = 1_000;
const PAGE_SIZE = 20;

const list = find('#requests ol', HTMLElement);
const filter = find('#endpoint-filter', HTMLSelectElement);
const older = find('#older', HTMLButtonElement);
let entries = new Map<number, LoggedRequest>();
/** Those that came as events since the log was last asked for: its answer may be older than they are. */
let since = new Map<number, LoggedRequest>();
let limit = PAGE_SIZE;

for (const endpoint of [...start.endpoints, 'unknown']) {
  filter.append(make('option', { value: endpoint }, endpoint));
}
filter.addEventListener('change', () => {
  limit = PAGE_SIZE;
  show();
});
older.addEventListener('click', () => {
  limit += PAGE_SIZE;
  show();
});

/** The log: what clients sent and were answered, the newest first. */
export const requests: Part = part<{ readonly requests: readonly LoggedRequest[] }>(
  'requests',
  (answer) => {
    entries = new Map([
      ...answer.requests.slice(-MAX_ENTRIES).map((entry) => [entry.number, entry] as const),
      ...since,
    ]);
    show();
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
  show();
}

function show(): void {
  const wanted = [...entries.values()]
    .filter(({ endpoint }) => filter.value === '' || endpoint === filter.value)
    .sort((one, other) => other.number - one.number);
  showList(list, wanted.slice(0, limit), ({ number }) => String(number), row);
  older.hidden = wanted.length <= limit;
  showEmpty('requests', wanted.length === 0);
}

function row(entry: LoggedRequest): HTMLElement {
  const { time, endpoint, client, method, url, query, form, authorization, status, fault, answer } = entry;
  const who = client === null ? null : clientName(client);
  const struck = fault === undefined ? null : `fault ${fault}`;
  const about = [endpoint === 'unknown' ? url : null, form['grant_type'], who, struck].filter(
    (one) => typeof one === 'string',
  );
  const facts = make('dl', { class: 'facts' }, fact('path', url));
  if (client !== null) facts.append(fact('client', client));
  if (authorization !== null) facts.append(fact('authorization', authorization));
  for (const [name, value] of Object.entries(query)) facts.append(fact(`query: ${name}`, value));
  for (const [name, value] of Object.entries(form)) facts.append(fact(`form: ${name}`, value));
  for (const [name, value] of Object.entries(answer)) facts.append(fact(`answer: ${name}`, String(value)));
  return make(
    'li',
    {},
    make(
      'details',
      {},
      make(
        'summary',
        {},
        make('time', { datetime: time, class: 'quiet' }, clockTime(time)),
        make('span', { class: 'what' }, `${method} ${endpoint}`),
        make('span', { class: 'about quiet' }, about.join(' · ')),
        statusBadge(status),
      ),
      facts,
    ),
  );
}

function fact(name: string, value: string): HTMLElement {
  return make('div', {}, make('dt', {}, name), make('dd', { class: 'value' }, value));
}

/** An answer's status, coloured by its class and named. @param status null: no answer arrived whole */
function statusBadge(status: number | null): HTMLElement {
  if (status === null) return make('span', { class: 'status s0' }, 'no answer');
  const kind = Math.floor(status / 100);
  return make('span', { class: `status s${kind}` }, `${status} ${start.statusNames[status] ?? ''}`.trim());
}
