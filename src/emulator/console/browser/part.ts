import type { ConsoleStart } from '../page.ts';
import { read } from './api.ts';
import { find } from './dom.ts';

/** A section of the page that shows one part of the emulator's state. */
export interface Part {
  /** Reads the state and shows it; hides the section where this emulator has no such part. */
  refresh(): Promise<void>;
}

/**
 * A part that shows what the API answers under a path.
 * @param id of its section
 */
export function part<T>(id: string, path: () => string, show: (answer: T) => void): Part {
  const section = find(`#${id}`, HTMLElement);
  let absent = false;
  return {
    async refresh() {
      if (absent) return;
      const answer = await read<T>(path());
      absent = answer === null;
      section.hidden = absent;
      if (answer !== null) show(answer);
    },
  };
}

/** Shows or hides what a section says when it has nothing to show. */
export function showEmpty(id: string, empty: boolean): void {
  find(`#${id} .empty`, HTMLElement).hidden = !empty;
}

/** What the page came with. */
export const start = JSON.parse(document.body.dataset['portal'] ?? '') as ConsoleStart;

const names = new Map(start.clients.map(({ id, name }) => [id, name]));

/** What to call a client. */
export function clientName(id: string | null): string {
  return id === null ? 'unknown client' : (names.get(id) ?? id);
}
