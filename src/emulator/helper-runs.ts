import { BoundedMap, Recent } from './bounded.ts';
import type { State } from './state.ts';

/** One poll of a code_url. */
export interface Poll {
  /** When, in milliseconds since 1970 by the emulator's clock. */
  readonly at: number;
  /** 404: no code yet, or no longer; 200: the code was served. */
  readonly status: 200 | 404;
}

/** One run of the helper flow, from the config request on: what the helper holds under a state. */
export interface HelperRun {
  readonly state: State;
  /** The newest code that the redirect brought, or null. */
  code: string | null;
  /** The code was exchanged: the link has done its work, and opens no further login. */
  done: boolean;
  readonly polls: Recent<Poll>;
}

/** Remembered runs, and polls of each. */
const RUNS = 20_000;
const POLLS = 1_000;

/** The helper's memory. A run appears when its state is first used, so a flood of config requests displaces nobody. */
export class HelperRuns {
  readonly #runs = new BoundedMap<HelperRun>(RUNS);

  /** The run of a state that was checked. */
  of(state: State): HelperRun {
    const known = this.#runs.get(state.id);
    if (known !== undefined) return known;
    const run = { state, code: null, done: false, polls: new Recent<Poll>(POLLS) };
    this.#runs.set(state.id, run);
    return run;
  }

  /** The run with this state id, if there was any use of it. */
  find(id: string): HelperRun | undefined {
    return this.#runs.get(id);
  }
}
