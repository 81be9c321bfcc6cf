// What a run has counted and found.
import type { Operations } from './operations.ts';

/** One kind of thing that went wrong. */
export interface Problem {
  readonly kind: string;
  /** The first of its kind: seed, request, what came, and how to see it again. */
  readonly first: string;
  times: number;
}

/** Resident memory and the heap after garbage collection, in MB; the heap is null where it can't be asked for. */
export interface Memory {
  readonly resident: number;
  readonly heap: number | null;
}

/** Kinds of problems after which there is no point in going on. */
const ENOUGH = 20;

export class Findings {
  /** Requests that were answered, or that were not to be. */
  sent = 0;
  /** How often each status came, to requests that met no fault. */
  readonly statuses = new Map<number, number>();
  /** After each part of the run. */
  readonly memory: Memory[] = [];
  readonly operations: Operations;
  readonly #problems = new Map<string, Problem>();
  readonly #said: (line: string) => void;

  /** @param said is told of each kind of problem when it is first seen */
  constructor(operations: Operations, said: (line: string) => void) {
    this.operations = operations;
    this.#said = said;
  }

  get problems(): readonly Problem[] {
    return [...this.#problems.values()];
  }

  get enough(): boolean {
    return this.#problems.size >= ENOUGH;
  }

  status(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  problem(kind: string, details: string): void {
    const known = this.#problems.get(kind);
    if (known !== undefined) {
      known.times += 1;
      return;
    }
    const first = `${kind}\n${details}`;
    this.#problems.set(kind, { kind, first, times: 1 });
    this.#said(`\nproblem: ${first}\n`);
  }
}

/** The statuses and how often each came, as one line. */
export function statusLine(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, times]) => `${status}: ${times}`)
    .join(', ');
}
