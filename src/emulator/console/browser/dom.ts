/// <reference lib="dom" />

/** What an element is made with: text is text and never markup. */
type Child = Node | string | null;

/** A new element with attributes and children; an attribute that is null is left out. */
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

/** A button that does something. */
export function createButton(label: string, action: () => unknown, attributes: Readonly<Record<string, string>> = {}) {
  const element = createElement('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', () => void action());
  return element;
}

/**
 * The element of the page that a selector finds.
 * @throws Error where the page has none: page and script don't belong together
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

/** The elements a list shows, by key, each with the JSON it was made from. */
const renderedEntries = new WeakMap<Element, Map<string, { readonly json: string; readonly element: HTMLElement }>>();

/**
 * Makes a list show these entries in this order. An entry that did not change keeps its element, and with it focus and
 * what was opened in it; one that did change hands focus to the same control of its new element.
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
  const wanted = [...after.values()].map(({ element }) => element);
  const hadFocus = list.contains(document.activeElement);
  for (const child of [...list.children]) if (!wanted.some((element) => element === child)) child.remove();
  wanted.forEach((element, index) => {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  });
  if (hadFocus && !list.contains(document.activeElement)) list.closest('section')?.querySelector('h2')?.focus();
}

const CONTROL_SELECTOR = 'button, input, select, summary';

/** Puts a new element where the old one is, with focus on the same control. */
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
