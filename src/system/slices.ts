import { setImmediate } from 'node:timers/promises';

/** After so many ms the other tasks of the event loop get a turn: token requests must not wait for a long report. */
const MAX_SLICE_MS = 4;

/**
 * Calls a function with each item, in slices of a few milliseconds. What it reads may change between two slices.
 * @param items must not change meanwhile
 */
export async function forEachInSlices<Item>(items: Iterable<Item>, visit: (item: Item) => void): Promise<void> {
  let began = performance.now();
  for (const item of items) {
    visit(item);
    if (performance.now() - began < MAX_SLICE_MS) continue;
    await setImmediate();
    began = performance.now();
  }
}

/** The results of a function for all items, see {@link forEachInSlices}. */
export async function mapInSlices<Item, Result>(items: Iterable<Item>, map: (item: Item) => Result): Promise<Result[]> {
  const results: Result[] = [];
  await forEachInSlices(items, (item) => results.push(map(item)));
  return results;
}
