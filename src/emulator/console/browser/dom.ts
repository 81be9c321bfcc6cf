/// <reference lib="dom" />

/** A child of an element. Text never becomes markup. */
type Child = Node | string | null;

/** Creates an element with attributes and children. Attributes that are null are left out. */
export function createElement<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | null>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** Creates a button. */
export function createButton(label: string, action: () => unknown, attributes: Readonly<Record<string, string>> = {}) {
  const element = createElement('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', () => void action());
  return element;
}

/**
 * The element of the page for a selector.
 * @throws Error if there is none: page and script do not match
 */
export function requireElement<E extends HTMLElement>(
  selector: string,
  type: new () => E,
  within: ParentNode = document,
): E {
  const element = within.querySelector(selector);
  if (element instanceof type) return element;
  throw new Error(`the page has no ${selector}`);
}

/** The elements of each list by key, with the JSON that they were rendered from. */
const renderedEntries = new WeakMap<Element, Map<string, { readonly json: string; readonly element: HTMLElement }>>();

/**
 * Shows entries in a list, in this order. An unchanged entry keeps its element, so that focus and opened details stay.
 * For a changed entry, focus moves to the same control of its new element.
 */
export function showList<T>(
  list: HTMLElement,
  entries: readonly T[],
  keyOf: (entry: T) => string,
  render: (entry: T) => HTMLElement,
): void {
  const before = renderedEntries.get(list) ?? new Map();
  const after = new Map(
    entries.map((entry) => {
      const json = JSON.stringify(entry);
      const known = before.get(keyOf(entry));
      return [
        keyOf(entry),
        known?.json === json ? known : { json, element: replaceElement(known?.element, render(entry)) },
      ];
    }),
  );
  renderedEntries.set(list, after);
  const elements = [...after.values()].map(({ element }) => element);
  const hadFocus = list.contains(document.activeElement);
  for (const child of [...list.children]) if (!elements.some((element) => element === child)) child.remove();
  elements.forEach((element, index) => {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  });
  if (hadFocus && !list.contains(document.activeElement)) list.closest('section')?.querySelector('h2')?.focus();
}

const CONTROL_SELECTOR = 'button, input, select, summary';

/** Replaces an element, and keeps opened details and the focus on the same control. */
function replaceElement(old: HTMLElement | undefined, element: HTMLElement): HTMLElement {
  if (old === undefined) return element;
  const open = old.querySelector('details')?.open === true;
  const details = element.querySelector('details');
  if (open && details !== null) details.open = true;
  const index = [...old.querySelectorAll(CONTROL_SELECTOR)].indexOf(document.activeElement ?? old);
  old.replaceWith(element);
  const control = element.querySelectorAll(CONTROL_SELECTOR)[index];
  if (control instanceof HTMLElement) control.focus();
  return element;
}
