import { setImmediate } from 'node:timers/promises';

/** After so many ms the other tasks of the event loop get a turn: token requests must not wait for a long report. */
const MAX_SLICE_MS = 4;

/** Lets the other tasks of the event loop run, between two parts of long work. */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate();
}

/** Runs a generator to its end, in slices of a few milliseconds: each of its steps may be the last of a slice. */
export async function runInSlices<Result>(steps: Generator<unknown, Result>): Promise<Result> {
  let began = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() - began < MAX_SLICE_MS) continue;
    await yieldToEventLoop();
    began = performance.now();
  }
}

/**
 * Calls a function with each item, in slices. What it reads may change between two slices.
 * @param items must not change meanwhile
 */
export function forEachInSlices<Item>(items: Iterable<Item>, visit: (item: Item) => void): Promise<void> {
  function* steps() {
    for (const item of items) yield visit(item);
  }
  return runInSlices(steps());
}

/** The results of a function for all items, see {@link forEachInSlices}. */
export async function mapInSlices<Item, Result>(items: Iterable<Item>, map: (item: Item) => Result): Promise<Result[]> {
  const results: Result[] = [];
  await forEachInSlices(items, (item) => results.push(map(item)));
  return results;
}
