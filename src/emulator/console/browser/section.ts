import type { ConsoleData } from '../page.ts';
import { fetchJson } from './api.ts';
import { requireElement } from './dom.ts';

/** A section of the page that shows one part of the emulator's state. */
export interface PageSection {
  /** Reads the state and shows it. */
  refresh(): Promise<void>;
}

/**
 * A part that shows what the API answers under a path.
 * @param id the path, and the id of its section
 * @param asking is called before the API is asked
 */
export function createSection<T>(
  id: string,
  show: (answer: T) => void,
  asking: () => void = () => undefined,
): PageSection {
  const section = requireElement(`#${id}`, HTMLElement);
  return {
    async refresh() {
      asking();
      const answer = await fetchJson<T>(id);
      section.hidden = false;
      show(answer);
    },
  };
}

/** Shows or hides what a section says when it has nothing to show. */
export function setEmptyMessageVisible(id: string, empty: boolean): void {
  requireElement(`#${id} .empty`, HTMLElement).hidden = !empty;
}

/** What the page came with. */
export const consoleData = JSON.parse(document.body.dataset['portal'] ?? '') as ConsoleData;

const clientNames = new Map(consoleData.clients.map(({ id, name }) => [id, name]));

/** What to call a client. */
export function clientName(id: string | null): string {
  return id === null ? 'unknown client' : (clientNames.get(id) ?? id);
}

/** The time of day of an instant (RFC 3339), UTC: `06:07:08`. */
export function formatTimeOfDay(instant: string): string {
  return instant.slice(11, 19);
}

/** An instant (RFC 3339) for people, UTC: `2031-05-05 06:07:08`. */
export function formatDateTime(instant: string): string {
  return instant.slice(0, 19).replace('T', ' ');
}

/** A time span in its largest two units: `1 h 30 min`. @param seconds zero or more */
export function formatDuration(seconds: number): string {
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of TIME_UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ') || '0 s';
}

const TIME_UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;
