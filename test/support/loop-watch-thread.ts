// The thread of loop-watch.ts: watches the processor time of the main thread while its event loop is blocked.
import { writeSync } from 'node:fs';
import { type Debugger, Session } from 'node:inspector';
import { workerData } from 'node:worker_threads';
import type { LoopWatchData } from './loop-watch.ts';
import { mainThreadCpuSeconds } from './processes.ts';

const { beats, maxTurnCpuSeconds } = workerData as LoopWatchData;
const LOOK_INTERVAL_MS = 500;
/** A thread that can't be paused is killed without a stack after this. */
const STACK_TIMEOUT_MS = 2000;
/** Between two tasks no frame of this project is on the stack: this many steps are taken until there is one. */
const MAX_STEPS = 100;

let lastBeat = -1;
let cpuAtLastBeat = 0;
const looking = setInterval(() => {
  const beat = Atomics.load(beats, 0);
  const cpu = mainThreadCpuSeconds(process.pid);
  if (beat !== lastBeat) {
    lastBeat = beat;
    cpuAtLastBeat = cpu;
  } else if (cpu - cpuAtLastBeat > maxTurnCpuSeconds) {
    clearInterval(looking);
    endWithStack();
  }
}, LOOK_INTERVAL_MS);

function endWithStack(): void {
  writeSync(2, `\nThe event loop was blocked for ${maxTurnCpuSeconds} s of processor time. It was at:\n`);
  setTimeout(end, STACK_TIMEOUT_MS);
  const session = new Session();
  session.connectToMainThread();
  const files = new Map<string, string>();
  const line = ({ functionName, location: { scriptId, lineNumber } }: Debugger.CallFrame) =>
    `    at ${functionName || '(anonymous)'} (${files.get(scriptId)}:${lineNumber + 1})`;
  const isOurs = ({ location }: Debugger.CallFrame) => files.get(location.scriptId)?.includes('/src/') === true;
  let steps = 0;
  session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => files.set(scriptId, url));
  session.on('Debugger.paused', ({ params: { callFrames } }) => {
    steps += 1;
    if (steps < MAX_STEPS && !callFrames.some(isOurs)) return session.post('Debugger.stepInto');
    writeSync(2, `${callFrames.map(line).join('\n')}\n`);
    end();
  });
  session.post('Debugger.enable');
  session.post('Debugger.pause');
}

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}
