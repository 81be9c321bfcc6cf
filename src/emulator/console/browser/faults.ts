import { change } from './api.ts';
import { button, find, make, showList } from './dom.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import { type Part, part, showEmpty } from './part.ts';

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
  const what = `${where === '*' ? 'any endpoint' : where}: ${FAULT_KINDS[kind]?.label ?? kind}`;
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
