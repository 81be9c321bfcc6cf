/** Shorter turns are those in which the event loop waited for something, in ms. */
const MIN_TURN_MS = 1;

/**
 * The turns of this thread's event loop during some work, in ms of processor time. Time that a busy machine gives to
 * other processes is not counted.
 * @param work takes many times longer than the kernel's resolution of a few milliseconds
 */
export async function measureEachTurn(work: () => Promise<unknown>): Promise<number[]> {
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
  return turns.filter((ms) => ms >= MIN_TURN_MS);
}

/** The share of the longest turn, from 0 to 1. It is near 1 if the work runs in one turn. */
export async function longestTurnShare(work: () => Promise<unknown>): Promise<number> {
  const turns = await measureEachTurn(work);
  return Math.max(...turns) / turns.reduce((sum, ms) => sum + ms, 0);
}
