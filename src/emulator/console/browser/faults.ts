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
  const what = `${where === '*' ? 'any endpoint' : where}: ${kind}`;
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

/** Sets up the form that adds a fault: a text in the JSON form of the API, which begins with an example of its kind. */
export function setUpFaultForm(): void {
  const form = requireElement('#add-fault', HTMLFormElement);
  const kind = requireElement('select', HTMLSelectElement, form);
  const text = requireElement('textarea', HTMLTextAreaElement, form);
  for (const { name, effect } of consoleData.faultKinds) {
    kind.append(createElement('option', { value: name }, `${name}: ${effect}`));
  }
  const showExample = () => {
    const example = consoleData.faultKinds.find(({ name }) => name === kind.value)?.example;
    text.value = JSON.stringify(example, null, 2);
  };
  kind.addEventListener('change', showExample);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void callApi('POST', 'faults', text.value, 'The fault was added.');
  });
  showExample();
}
