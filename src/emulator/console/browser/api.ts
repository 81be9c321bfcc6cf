import { requireElement } from './dom.ts';

/** What the API answers to a read. */
export async function fetchJson<T>(path: string): Promise<T> {
  const response = await fetch(`/_emulator/${path}`, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as T;
}

/** Happens to the document when this page has changed something, or tried to. */
export const CHANGED_EVENT = 'emulator-changed';

/**
 * Changes something through the API and tells the person what came of it.
 * @returns whether it was done
 */
export async function callApi(
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body: Readonly<Record<string, unknown>> | null,
  done: string,
): Promise<boolean> {
  try {
    const response = await fetch(`/_emulator/${path}`, {
      method,
      ...(body !== null && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    if (response.ok) showMessage(done, 'good');
    else showMessage(await errorMessage(response), 'bad');
    document.dispatchEvent(new Event(CHANGED_EVENT));
    return response.ok;
  } catch {
    showMessage('The emulator does not answer. Is it still running?', 'bad');
    return false;
  }
}

async function errorMessage(response: Response): Promise<string> {
  const answer = (await response.json().catch(() => ({}))) as { readonly message?: string };
  return answer.message ?? `The emulator answered ${response.status}.`;
}

const messageBar = requireElement('#notice', HTMLElement);
const messageText = requireElement('span', HTMLElement, messageBar);

requireElement('button', HTMLButtonElement, messageBar).addEventListener('click', () => {
  messageBar.hidden = true;
});
// The style fades good news out after a while; bad news stays until it was read.
messageBar.addEventListener('animationend', () => {
  messageBar.hidden = true;
});

/** Tells the person what came of what was asked for; screen readers say it aloud. */
function showMessage(message: string, kind: 'good' | 'bad'): void {
  messageBar.hidden = true;
  messageText.textContent = message;
  messageBar.className = kind;
  messageBar.hidden = false;
}
