import * as v from 'valibot';
import { instantSchema } from '../http/json-body.ts';
import { BoundedMap, RingBuffer } from '../memory/bounded-collections.ts';
import type { HelperState } from './helper-state.ts';

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
export interface HelperFlow {
  readonly state: HelperState;
  /** The newest code that the redirect brought, or null. */
  code: string | null;
  /** The code was exchanged: the link has done its work, and opens no further login. */
  done: boolean;
  /** Since the login page was opened, and until a user has logged in or refused. */
  login: OpenLogin | null;
  readonly polls: RingBuffer<Poll>;
}

/** Remembered runs, and polls of each. */
const MAX_FLOWS = 20_000;
const MAX_POLLS = 1_000;

/** The helper's memory. A run appears when its state is first used, so a flood of config requests displaces nobody. */
export class HelperFlows {
  readonly #runs = new BoundedMap<HelperFlow>(MAX_FLOWS);
  readonly #onLoginsChange: () => void;

  /** @param kept the runs from before, the oldest first; their polls are forgotten */
  constructor(kept: readonly HelperFlow[], onLoginsChange: () => void) {
    for (const run of kept) this.#runs.set(run.state.id, { ...run, polls: newPolls() });
    this.#onLoginsChange = onLoginsChange;
  }

  /** The run of a state that was checked. */
  getOrCreate(state: HelperState): HelperFlow {
    const known = this.#runs.get(state.id);
    if (known !== undefined) return known;
    const run = { state, code: null, done: false, login: null, polls: newPolls() };
    this.#runs.set(state.id, run);
    return run;
  }

  /** The login page of a state is open at `now`, in milliseconds since 1970. */
  openLogin(state: HelperState, jwt: string, now: number): void {
    this.#update(this.getOrCreate(state), { login: { jwt, openedAt: now } });
  }

  /** The user has refused. */
  denyLogin(state: HelperState): void {
    const run = this.#runs.get(state.id);
    if (run !== undefined) this.#update(run, { login: null });
  }

  /** The redirect has brought a code. */
  deliverCode(state: HelperState, code: string): void {
    this.#update(this.getOrCreate(state), { code, login: null });
  }

  /** The code was exchanged. */
  complete(id: string): void {
    const run = this.#runs.get(id);
    if (run !== undefined) this.#update(run, { done: true });
  }

  /** The run with this state id, if there was any use of it. */
  find(id: string): HelperFlow | undefined {
    return this.#runs.get(id);
  }

  /** All runs, the oldest first. */
  all(): HelperFlow[] {
    return this.#runs.values();
  }

  clear(): void {
    this.#runs.clear();
  }

  #update(run: HelperFlow, change: Partial<Pick<HelperFlow, 'code' | 'done' | 'login'>>): void {
    const loginBefore = run.login;
    Object.assign(run, change);
    if (run.login !== loginBefore) this.#onLoginsChange();
  }
}

function newPolls(): RingBuffer<Poll> {
  return new RingBuffer<Poll>(MAX_POLLS);
}

/** A login page of the helper flow that was opened, and at which the user has neither logged in nor refused. */
export const WaitingLogin = v.strictObject({
  state: v.pipe(v.string(), v.description('The id of the state; `login` takes it like the state itself')),
  /** The client's id. */
  client: v.string(),
  opened: instantSchema(),
  /** When the link ends. */
  expires: instantSchema(),
});
export type WaitingLogin = Readonly<v.InferOutput<typeof WaitingLogin>>;

/**
 * The logins that wait for somebody, the oldest first.
 * @param now milliseconds since 1970
 */
export function waitingLogins(runs: HelperFlows, now: number): WaitingLogin[] {
  return runs.all().flatMap(({ state, login, done }) => {
    if (login === null || done || state.expiresAt <= now) return [];
    const opened = new Date(login.openedAt).toISOString();
    return [{ state: state.id, client: state.clientId, opened, expires: new Date(state.expiresAt).toISOString() }];
  });
}
