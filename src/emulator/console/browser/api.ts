import { find } from './dom.ts';

/** What the API answers to a read. */
export async function read<T>(path: string): Promise<T> {
  const response = await fetch(`/_emulator/${path}`, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as T;
}

/** Happens to the document when this page has changed something, or tried to. */
export const CHANGED = 'emulator-changed';

/**
 * Changes something through the API and tells the person what came of it.
 * @returns whether it was done
 */
export async function change(
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
    if (response.ok) notice(done, 'good');
    else notice(await complaint(response), 'bad');
    document.dispatchEvent(new Event(CHANGED));
    return response.ok;
  } catch {
    notice('The emulator does not answer. Is it still running?', 'bad');
    return false;
  }
}

async function complaint(response: Response): Promise<string> {
  const answer = (await response.json().catch(() => ({}))) as { readonly message?: string };
  return answer.message ?? `The emulator answered ${response.status}.`;
}

const bar = find('#notice', HTMLElement);
const text = find('span', HTMLElement, bar);

find('button', HTMLButtonElement, bar).addEventListener('click', () => {
  bar.hidden = true;
});
// The style fades good news out after a while; bad news stays until it was read.
bar.addEventListener('animationend', () => {
  bar.hidden = true;
});

/** Tells the person what came of what was asked for; screen readers say it aloud. */
function notice(message: string, kind: 'good' | 'bad'): void {
  bar.hidden = true;
  text.textContent = message;
  bar.className = kind;
  bar.hidden = false;
}
