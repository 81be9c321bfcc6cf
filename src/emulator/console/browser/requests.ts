import { find, make, showList } from './dom.ts';
import { type Part, part, showEmpty } from './part.ts';
import { clientName } from './start.ts';
import { statusBadge } from './status-badge.ts';
import { clockTime } from './times.ts';

/** An entry of the log as the API gives it. */
export interface Entry {
  readonly number: number;
  /** RFC 3339. */
  readonly time: string;
  readonly endpoint: string;
  readonly client: string | null;
  readonly method: string;
  readonly url: string;
  readonly query: Readonly<Record<string, string>>;
  readonly form: Readonly<Record<string, string>>;
  readonly authorization: string | null;
  readonly status: number | null;
  /** The id of the fault that struck it. */
  readonly fault?: string;
  /** Members of the answer. */
  readonly answer?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Entries kept in the page, and shown at first and with every press of the button. */
const KEPT = 1_000;
const SHOWN = 20;

const list = find('#requests ol', HTMLElement);
const filter = find('#endpoint-filter', HTMLSelectElement);
const older = find('#older', HTMLButtonElement);
let entries = new Map<number, Entry>();
/** Those that came as events since the log was last asked for: its answer may be older than they are. */
let since = new Map<number, Entry>();
let limit = SHOWN;

for (const endpoint of ['config', 'authorize', 'code/get', 'code/set', 'token', 'whoami', 'unknown']) {
  filter.append(make('option', { value: endpoint }, endpoint));
}
filter.addEventListener('change', () => {
  limit = SHOWN;
  show();
});
older.addEventListener('click', () => {
  limit += SHOWN;
  show();
});

/** The log: what clients sent and were answered, the newest first. */
export const requests: Part = part<{ readonly requests: readonly Entry[] }>(
  'requests',
  () => {
    since = new Map();
    return 'requests';
  },
  (answer) => {
    entries = new Map([...answer.requests.slice(-KEPT).map((entry) => [entry.number, entry] as const), ...since]);
    show();
  },
);

/** Shows one more entry, or what became of one. */
export function addRequest(entry: Entry): void {
  for (const kept of [entries, since]) {
    kept.set(entry.number, entry);
    for (const oldest of kept.keys()) {
      if (kept.size <= KEPT) break;
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

function row(entry: Entry): HTMLElement {
  const { time, endpoint, client, method, url, query, form, authorization, status, fault, answer = {} } = entry;
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
