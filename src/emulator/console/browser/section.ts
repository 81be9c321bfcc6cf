import type { ConsoleData } from '../page.ts';
import { fetchJson } from './api.ts';
import { requireElement } from './dom.ts';

/** Reads one part of the emulator's state, and shows it in its section of the page. */
export type PageSection = () => Promise<void>;

/**
 * A section that shows a part of the state.
 * @param id the path in the API, and the ID of the section's element
 * @param onRequest called before each request to the API
 */
export function createSection<T>(
  id: string,
  show: (response: T) => void,
  onRequest: () => void = () => undefined,
): PageSection {
  const section = requireElement(`#${id}`, HTMLElement);
  return async () => {
    onRequest();
    const response = await fetchJson<T>(id);
    section.hidden = false;
    show(response);
  };
}

/** Shows or hides the text of an empty section. */
export function setEmptyMessageVisible(id: string, empty: boolean): void {
  requireElement(`#${id} .empty`, HTMLElement).hidden = !empty;
}

/** The initial data of the page. */
export const consoleData = JSON.parse(document.body.dataset['portal'] ?? '') as ConsoleData;

const clientNames = new Map(consoleData.clients.map(({ id, name }) => [id, name]));

/** The displayed name of a client. */
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
  let remaining = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of TIME_UNITS) {
    const count = Math.floor(remaining / size);
    remaining -= count * size;
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
