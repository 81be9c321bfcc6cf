/** Shorter turns are those in which the event loop waited for something, in ms. */
const MIN_TURN_MS = 1;

/**
 * The share of the longest turn of this thread's event loop in the processor time of some work, from 0 to 1. It is near
 * 1 if the work runs in one turn. Time that a busy machine gives to other processes is not counted.
 * @param work takes many times longer than the kernel's resolution of a few milliseconds
 */
export async function longestTurnShare(work: () => Promise<unknown>): Promise<number> {
  const turns: number[] = [];
  let last = process.threadCpuUsage();
  function endTurn(): void {
    const { user, system } = process.threadCpuUsage(last);
    turns.push((user + system) / 1000);
    last = process.threadCpuUsage();
  }
  let immediate = setImmediate(function next() {
    endTurn();
    immediate = setImmediate(next);
  });
  await work();
  endTurn();
  clearImmediate(immediate);
  const worked = turns.filter((ms) => ms >= MIN_TURN_MS);
  return Math.max(...worked) / worked.reduce((sum, ms) => sum + ms, 0);
}
