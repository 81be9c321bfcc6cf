import { requireElement } from './dom.ts';

/** Reads a part of the state from the API. */
export async function fetchJson<T>(path: string): Promise<T> {
  const response = await fetch(`/_emulator/${path}`, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${path}: the emulator answered ${response.status}`);
  return (await response.json()) as T;
}

/**
 * Changes something through the API, and says whether it succeeded. The events then report what has changed.
 * @param body to be written as JSON, or its text as a person has written it
 * @param done the message after success
 * @returns whether it succeeded
 */
export async function callApi(
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body: Readonly<Record<string, unknown>> | string | null,
  done: string,
): Promise<boolean> {
  try {
    const response = await fetch(`/_emulator/${path}`, {
      method,
      ...(body !== null && {
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });
    if (response.ok) showMessage(done, 'good');
    else showMessage(await errorMessage(response), 'bad');
    return response.ok;
  } catch {
    showMessage('The emulator does not respond. Is it still running?', 'bad');
    return false;
  }
}

async function errorMessage(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as { readonly message?: string };
  return body.message ?? `The emulator answered ${response.status}.`;
}

const messageBar = requireElement('#notice', HTMLElement);
const messageText = requireElement('span', HTMLElement, messageBar);

requireElement('button', HTMLButtonElement, messageBar).addEventListener('click', () => {
  messageBar.hidden = true;
});
// The style sheet fades out messages of success after a while; error messages stay until they are closed.
messageBar.addEventListener('animationend', () => {
  messageBar.hidden = true;
});

/** Shows the result of an action; screen readers announce it. */
function showMessage(message: string, kind: 'good' | 'bad'): void {
  messageBar.hidden = true;
  messageText.textContent = message;
  messageBar.className = kind;
  messageBar.hidden = false;
}
