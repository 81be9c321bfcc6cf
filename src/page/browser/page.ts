/// <reference lib="dom" />
import { startLiveUpdates } from './live-updates.ts';
import { startTimeUpdates } from './time-elements.ts';

/** How long a button shows that it has copied, in ms. */
const COPIED_LABEL_MS = 2500;

/**
 * Shows the buttons that copy a value or print the page. They are hidden without scripts: then a tap selects the text,
 * and the browser's menu prints.
 */
function enableButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[hidden]')) button.hidden = false;
  document.addEventListener('click', ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLButtonElement>('button') : null;
    if (button?.dataset['print'] !== undefined) print();
    const source = document.getElementById(button?.dataset['copy'] ?? '');
    if (button !== null && source !== null) void copy(button, source);
  });
}

async function copy(button: HTMLButtonElement, source: HTMLElement): Promise<void> {
  const value = source instanceof HTMLInputElement ? source.value : source.textContent;
  const isCopied = await navigator.clipboard.writeText(value).then(
    () => true,
    () => copyBySelection(source),
  );
  if (!isCopied) return;
  const before = button.textContent;
  const copied = button.dataset['copied'] ?? '';
  if (before === copied) return;
  button.textContent = copied;
  setTimeout(() => {
    button.textContent = before;
  }, COPIED_LABEL_MS);
}

/** Copies by selection, for a browser that denies the page access to the clipboard. */
function copyBySelection(source: HTMLElement): boolean {
  if (source instanceof HTMLInputElement) source.select();
  else getSelection()?.selectAllChildren(source);
  return document.execCommand('copy');
}

startTimeUpdates();
enableButtons();
startLiveUpdates();
