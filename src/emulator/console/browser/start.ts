import type { ConsoleStart } from '../page.ts';

/** What the page came with. */
export const start = JSON.parse(document.body.dataset['portal'] ?? '') as ConsoleStart;

const names = new Map(start.clients.map(({ id, name }) => [id, name]));

/** What to call a client. */
export function clientName(id: string | null): string {
  return id === null ? 'unknown client' : (names.get(id) ?? id);
}
