import * as v from 'valibot';
import { instant } from '../http/json-body.ts';
import { BoundedMap, Recent } from '../memory/bounded.ts';
import type { State } from './state.ts';

/** One poll of a code_url. */
export interface Poll {
  /** When, in milliseconds since 1970 by the emulator's clock. */
  readonly at: number;
  /** 404: no code yet, or no longer; 200: the code was served. */
  readonly status: 200 | 404;
}

/** A login page that is open: somebody is waited for. */
interface OpenLogin {
  /** The state itself. */
  readonly jwt: string;
  /** Milliseconds since 1970. */
  readonly openedAt: number;
}

/** One run of the helper flow, from the config request on: what the helper holds under a state. */
export interface HelperRun {
  readonly state: State;
  /** The newest code that the redirect brought, or null. */
  code: string | null;
  /** The code was exchanged: the link has done its work, and opens no further login. */
  done: boolean;
  /** Since the login page was opened, and until a user has logged in or refused. */
  login: OpenLogin | null;
  readonly polls: Recent<Poll>;
}

/** Remembered runs, and polls of each. */
const MAX_RUNS = 20_000;
const MAX_POLLS = 1_000;

/** The helper's memory. A run appears when its state is first used, so a flood of config requests displaces nobody. */
export class HelperRuns {
  readonly #runs = new BoundedMap<HelperRun>(MAX_RUNS);
  readonly #loginsChanged: () => void;

  /** @param kept the runs from before, the oldest first; their polls are forgotten */
  constructor(kept: readonly HelperRun[], loginsChanged: () => void) {
    for (const run of kept) this.#runs.set(run.state.id, { ...run, polls: newPolls() });
    this.#loginsChanged = loginsChanged;
  }

  /** The run of a state that was checked. */
  of(state: State): HelperRun {
    const known = this.#runs.get(state.id);
    if (known !== undefined) return known;
    const run = { state, code: null, done: false, login: null, polls: newPolls() };
    this.#runs.set(state.id, run);
    return run;
  }

  /** The login page of a state is open at `now`, in milliseconds since 1970. */
  open(state: State, jwt: string, now: number): void {
    this.#update(this.of(state), { login: { jwt, openedAt: now } });
  }

  /** The user has refused. */
  refuse(state: State): void {
    const run = this.#runs.get(state.id);
    if (run !== undefined) this.#update(run, { login: null });
  }

  /** The redirect has brought a code. */
  bring(state: State, code: string): void {
    this.#update(this.of(state), { code, login: null });
  }

  /** The code was exchanged. */
  finish(id: string): void {
    const run = this.#runs.get(id);
    if (run !== undefined) this.#update(run, { done: true });
  }

  /** The run with this state id, if there was any use of it. */
  find(id: string): HelperRun | undefined {
    return this.#runs.get(id);
  }

  /** All runs, the oldest first. */
  all(): HelperRun[] {
    return this.#runs.values();
  }

  clear(): void {
    this.#runs.clear();
  }

  #update(run: HelperRun, change: Partial<Pick<HelperRun, 'code' | 'done' | 'login'>>): void {
    const loginBefore = run.login;
    Object.assign(run, change);
    if (run.login !== loginBefore) this.#loginsChanged();
  }
}

function newPolls(): Recent<Poll> {
  return new Recent<Poll>(MAX_POLLS);
}

/** A login page of the helper flow that was opened, and at which the user has neither logged in nor refused. */
export const WaitingLogin = v.strictObject({
  state: v.pipe(v.string(), v.description('The id of the state; `login` takes it like the state itself')),
  /** The client's id. */
  client: v.string(),
  opened: instant(),
  /** When the link ends. */
  expires: instant(),
});
export type WaitingLogin = Readonly<v.InferOutput<typeof WaitingLogin>>;

/**
 * The logins that wait for somebody, the oldest first.
 * @param now milliseconds since 1970
 */
export function waitingLogins(runs: HelperRuns, now: number): WaitingLogin[] {
  return runs.all().flatMap(({ state, login, done }) => {
    if (login === null || done || state.expiresAt <= now) return [];
    const opened = new Date(login.openedAt).toISOString();
    return [{ state: state.id, client: state.clientId, opened, expires: new Date(state.expiresAt).toISOString() }];
  });
}
