import { find, make, showList } from './dom.ts';
import { clientName, type Part, part, showEmpty } from './part.ts';

interface Finding {
  readonly client: string | null;
  /** What it is, as a sentence. */
  readonly message: string;
}

/** What a client does that the portal would not like, by the API's names; `polls` says how each code was polled for. */
const HEADINGS: Readonly<Record<string, string>> = {
  reused_refresh_tokens: 'Used refresh token',
  repeated_codes: 'Used code',
  overlapping_refreshes: 'Overlapping refreshes',
  early_refreshes: 'Early refreshes',
  failed_authentications: 'Failed authentication',
  polls: 'Polling',
};

/** Findings of one kind that the page shows: the newest. */
const SHOWN = 5;

const list = find('#findings ul', HTMLElement);

/** What the author of a client wants to know after a test. */
export const findings: Part = part<Readonly<Record<string, readonly Finding[]>>>('findings', (answer) => {
  const all = Object.entries(HEADINGS).flatMap(([kind, heading]) =>
    (answer[kind] ?? [])
      .slice(-SHOWN)
      .map((finding, index) => ({ ...finding, key: `${kind} ${index}`, kind, heading })),
  );
  showList(list, all, ({ key }) => key, row);
  showEmpty('findings', all.length === 0);
});

function row({ client, message, kind, heading }: Finding & { readonly kind: string; readonly heading: string }) {
  const badge = make('span', { class: kind === 'polls' ? 'status' : 'status s4' }, heading);
  return make('li', {}, make('p', { class: 'row' }, badge, make('b', {}, clientName(client))), make('p', {}, message));
}
