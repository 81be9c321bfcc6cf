// Ends a test process whose event loop stands still: no deadline can, because it is a timer of the same loop.
import { Worker } from 'node:worker_threads';

/** Seconds of processor time that one turn of the event loop may take. What a busy machine gives to others is not counted. */
const MAX_TURN_CPU_SECONDS = 5;
const BEAT_INTERVAL_MS = 250;

/** What the watching thread is given. */
export interface LoopWatchData {
  /** Counts the turns of the event loop that is watched, roughly. */
  readonly beats: Int32Array;
  readonly maxTurnCpuSeconds: number;
}

const STARTED = Symbol.for('latchkey.test.loopWatch');

if (!Reflect.has(globalThis, STARTED)) {
  Reflect.set(globalThis, STARTED, true);
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(beats, 0, 1), BEAT_INTERVAL_MS).unref();
  const workerData: LoopWatchData = { beats, maxTurnCpuSeconds: MAX_TURN_CPU_SECONDS };
  new Worker(new URL('./loop-watch-thread.ts', import.meta.url), { workerData, execArgv: [] }).unref();
}
