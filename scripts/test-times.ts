import { readFileSync } from 'node:fs';

/** What a part of a test run has taken, in seconds. */
export interface Times {
  readonly name: string;
  readonly wall: number;
  /** Processor time of all processes; null where it was not measured. */
  readonly cpu: number | null;
}

/** What the test files have taken, by their folder; files that ran side by side are added up, so that walls overlap. */
export function timesOfTests(file: string): Times[] {
  const byFolder = new Map<string, { wall: number; cpu: number }>();
  for (const line of linesOf(file)) {
    const { name, wall, cpu } = JSON.parse(line) as { name: string; wall: number; cpu: number };
    const folder = name.split('/').slice(0, 2).join('/');
    const sum = byFolder.get(folder) ?? { wall: 0, cpu: 0 };
    byFolder.set(folder, { wall: sum.wall + wall, cpu: sum.cpu + cpu });
  }
  return [...byFolder].map(([name, times]) => ({ name, ...times })).sort((a, b) => b.cpu - a.cpu);
}

/** A table of them, in the order that they are given in. */
export function timesTable(times: readonly Times[]): string {
  const width = Math.max(...times.map(({ name }) => name.length), 'part'.length);
  const row = (name: string, wall: string, cpu: string) =>
    `  ${name.padEnd(width)}  ${wall.padStart(8)}  ${cpu.padStart(9)}`;
  return [
    'Where the time went, in seconds (files that ran side by side are added up):',
    row('part', 'wall', 'processor'),
    ...times.map(({ name, wall, cpu }) => row(name, wall.toFixed(1), cpu === null ? '–' : cpu.toFixed(1))),
  ].join('\n');
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return [];
  }
}
