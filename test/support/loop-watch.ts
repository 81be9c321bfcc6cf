// Kills a test process whose event loop is blocked: no deadline can, because it is a timer of the same loop.
import { Worker } from 'node:worker_threads';

/**
 * Seconds of processor time that one turn of the event loop may take. Time that a busy machine gives to other processes
 * is not counted.
 */
const MAX_TURN_CPU_SECONDS = 5;
const BEAT_INTERVAL_MS = 250;

/** The data of the watching thread. */
export interface LoopWatchData {
  /** A rough count of the turns of the watched event loop. */
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
