import type { Inspector } from '../inspector.ts';

/** What a server spends the time of a request on, as its own profiler samples it: in the order in which it is told. */
export const PARTS = [
  'TLS and system calls',
  'garbage',
  "Node's machine code",
  "Node's JavaScript",
  'libraries',
  'own',
] as const;
type Part = (typeof PARTS)[number];

/** Microseconds between two samples: more of them would slow down what they are taken of. */
const INTERVAL = 200;
/** Bytes between two samples of the heap. */
const HEAP_INTERVAL = 1024;

interface CallFrame {
  readonly functionName: string;
  /** Empty for what is not JavaScript. */
  readonly url: string;
}

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  /** µs before each sample. */
  readonly timeDeltas: readonly number[];
}

interface HeapNode {
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** The parts' shares, 0 to 1, of the time for which a process is busy while `load` runs. */
export async function shares(inspector: Inspector, load: () => Promise<unknown>): Promise<Record<Part, number>> {
  await inspector.call('Profiler.enable');
  await inspector.call('Profiler.setSamplingInterval', { interval: INTERVAL });
  await inspector.call('Profiler.start');
  await load();
  const { profile } = await inspector.call<{ profile: CpuProfile }>('Profiler.stop');
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map<Part, number>(PARTS.map((part) => [part, 0]));
  for (const [index, id] of profile.samples.entries()) {
    const part = partOf(frames.get(id));
    if (part !== null) times.set(part, (times.get(part) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  const all = [...times.values()].reduce((sum, time) => sum + time, 0);
  return Object.fromEntries([...times].map(([part, time]) => [part, time / all])) as Record<Part, number>;
}

/** Bytes that a process allocates on V8's heap while `load` runs, what is collected meanwhile too. */
export async function allocated(inspector: Inspector, load: () => Promise<unknown>): Promise<number> {
  const collected = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true };
  await inspector.call('HeapProfiler.startSampling', { samplingInterval: HEAP_INTERVAL, ...collected });
  await load();
  const { profile } = await inspector.call<{ profile: { head: HeapNode } }>('HeapProfiler.stopSampling');
  return sizeOf(profile.head);
}

function sizeOf({ selfSize, children }: HeapNode): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}

/** @returns null while it has nothing to do */
function partOf(frame: CallFrame | undefined): Part | null {
  const { functionName, url } = frame ?? { functionName: '(program)', url: '' };
  if (functionName === '(idle)') return null;
  if (functionName === '(garbage collector)') return 'garbage';
  if (url.startsWith('node:')) return "Node's JavaScript";
  if (url !== '') return url.includes('/node_modules/') ? 'libraries' : 'own';
  return /^write/.test(functionName) ? 'TLS and system calls' : "Node's machine code";
}
