import type { ConsoleStart } from '../page.ts';
import { read } from './api.ts';
import { find } from './dom.ts';

/** A section of the page that shows one part of the emulator's state. */
export interface Part {
  /** Reads the state and shows it. */
  refresh(): Promise<void>;
}

/**
 * A part that shows what the API answers under a path.
 * @param id the path, and the id of its section
 * @param asking is called before the API is asked
 */
export function part<T>(id: string, show: (answer: T) => void, asking: () => void = () => undefined): Part {
  const section = find(`#${id}`, HTMLElement);
  return {
    async refresh() {
      asking();
      const answer = await read<T>(id);
      section.hidden = false;
      show(answer);
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
