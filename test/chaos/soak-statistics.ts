import { readdirSync, readFileSync } from 'node:fs';

/** A value that was measured at a time, in minutes. */
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

/** How much is added in a minute: the median of the slopes between all pairs (Theil and Sen), which no outlier moves. */
export function slope(samples: readonly Sample[]): number {
  const slopes = samples.flatMap((one, index) =>
    samples.slice(index + 1).map((other) => (other.value - one.value) / (other.minutes - one.minutes)),
  );
  return slopes.length === 0 ? 0 : median(slopes);
}

/** How much is usually added in a minute: the median of what is added in each half of one. A burst lifts it once. */
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

/** How much was added in all, for a minute. */
export function meanGrowth(samples: readonly Sample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || first === last) return 0;
  return (last.value - first.value) / (last.minutes - first.minutes);
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
