import type { Findings } from './findings.ts';
import type { Run } from './run.ts';

/** The program that is fuzzed. */
export interface Subject {
  readonly name: 'emulator' | 'hub';
  /** Fills what it remembers, so that from here on its memory has no reason to grow. @returns what that came to */
  fill(): Promise<string | null>;
  fuzz(run: Omit<Run, 'memory'>): Promise<Findings>;
  /** Sends one request of a run alone. */
  only(seed: number, number: number): Promise<string>;
  /** How it ended by itself, or null while it runs. */
  ended(): string | null;
  /** What it complained about: nothing, if all is well. */
  complaints(): string;
  stop(): Promise<void>;
}
