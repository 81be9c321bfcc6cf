import { readdirSync, readFileSync } from 'node:fs';

/** A measured value and its time, in minutes. */
export interface Sample {
  readonly minutes: number;
  readonly value: number;
}

/** Resident memory of a process, in kB. */
export function residentMemory(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** The growth per minute: the median of the slopes between all pairs (Theil–Sen), which is robust against outliers. */
export function slope(samples: readonly Sample[]): number {
  const slopes = samples.flatMap((one, index) =>
    samples.slice(index + 1).map((other) => (other.value - one.value) / (other.minutes - one.minutes)),
  );
  return slopes.length === 0 ? 0 : median(slopes);
}

/** The typical growth per minute: the median over intervals of half a minute. A single burst does not change it. */
export function medianGrowth(samples: readonly Sample[]): number {
  const added: number[] = [];
  let [from] = samples;
  for (const sample of samples) {
    if (from === undefined || sample.minutes - from.minutes < 0.5) continue;
    added.push((sample.value - from.value) / (sample.minutes - from.minutes));
    from = sample;
  }
  return median(added);
}

/** The total growth, per minute. */
export function meanGrowth(samples: readonly Sample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || first === last) return 0;
  return (last.value - first.value) / (last.minutes - first.minutes);
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
