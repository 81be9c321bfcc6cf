import * as v from 'valibot';
import { BoundedMap, RingBuffer } from '../bounded-collections.ts';
import { instantSchema } from '../json.ts';
import type { HelperState } from './helper-state.ts';

/** One poll of a code_url. */
export interface Poll {
  /** Milliseconds since 1970, by the emulator's clock. */
  readonly at: number;
  /** 404: no code yet, or no longer; 200: the code was served. */
  readonly status: 200 | 404;
}

/** An open login page at which the user has not acted yet. */
interface OpenLogin {
  /** The state itself. */
  readonly jwt: string;
  /** Milliseconds since 1970. */
  readonly openedAt: number;
}

/** One pass through the helper flow: what the helper stores for a state. */
export interface HelperFlow {
  readonly state: HelperState;
  /** The newest code that a browser delivered to code/set, or null. */
  code: string | null;
  /** Whether the code was exchanged, so that the link opens no further login. */
  done: boolean;
  /** Set from the opening of the login page until the user has logged in or refused. */
  login: OpenLogin | null;
  readonly polls: RingBuffer<Poll>;
}

/** Flows kept, and polls kept of each. */
const MAX_FLOWS = 20_000;
const MAX_POLLS = 1_000;

/**
 * The helper's state. A flow is stored at the first use of its state, so that unused config requests displace no flow.
 */
export class HelperFlows {
  readonly #flows = new BoundedMap<HelperFlow>(MAX_FLOWS);
  readonly #onLoginsChange: () => void;

  /** @param saved the flows of the state file, oldest first; polls are not restored */
  constructor(saved: readonly HelperFlow[], onLoginsChange: () => void) {
    for (const flow of saved) this.#flows.set(flow.state.id, { ...flow, polls: newPolls() });
    this.#onLoginsChange = onLoginsChange;
  }

  /** The flow of a verified state. */
  getOrCreate(state: HelperState): HelperFlow {
    const known = this.#flows.get(state.id);
    if (known !== undefined) return known;
    const flow = { state, code: null, done: false, login: null, polls: newPolls() };
    this.#flows.set(state.id, flow);
    return flow;
  }

  /** Records that the login page of a state was opened at `now`, in milliseconds since 1970. */
  openLogin(state: HelperState, jwt: string, now: number): void {
    this.#update(this.getOrCreate(state), { login: { jwt, openedAt: now } });
  }

  /** Records that the user has refused. */
  denyLogin(state: HelperState): void {
    const flow = this.#flows.get(state.id);
    if (flow !== undefined) this.#update(flow, { login: null });
  }

  /** Records the code that a browser delivered. */
  deliverCode(state: HelperState, code: string): void {
    this.#update(this.getOrCreate(state), { code, login: null });
  }

  /** Records that the code was exchanged. */
  complete(id: string): void {
    const flow = this.#flows.get(id);
    if (flow !== undefined) this.#update(flow, { done: true });
  }

  /** The flow with this state ID, if the state was used. */
  find(id: string): HelperFlow | undefined {
    return this.#flows.get(id);
  }

  /** All flows, oldest first. */
  all(): HelperFlow[] {
    return this.#flows.values();
  }

  clear(): void {
    this.#flows.clear();
  }

  #update(flow: HelperFlow, change: Partial<Pick<HelperFlow, 'code' | 'done' | 'login'>>): void {
    const loginBefore = flow.login;
    Object.assign(flow, change);
    if (flow.login !== loginBefore) this.#onLoginsChange();
  }
}

function newPolls(): RingBuffer<Poll> {
  return new RingBuffer<Poll>(MAX_POLLS);
}

/** An open login page of the helper flow, at which the user has neither logged in nor refused. */
export const WaitingLogin = v.strictObject({
  state: v.pipe(v.string(), v.description('The ID of the state; `login` accepts it instead of the state')),
  /** The client's ID. */
  client: v.string(),
  opened: instantSchema(),
  /** When the link expires. */
  expires: instantSchema(),
});
export type WaitingLogin = Readonly<v.InferOutput<typeof WaitingLogin>>;

/**
 * The waiting logins, oldest first.
 * @param now milliseconds since 1970
 */
export function waitingLogins(flows: HelperFlows, now: number): WaitingLogin[] {
  return flows.all().flatMap(({ state, login, done }) => {
    if (login === null || done || state.expiresAt <= now) return [];
    const opened = new Date(login.openedAt).toISOString();
    return [{ state: state.id, client: state.clientId, opened, expires: new Date(state.expiresAt).toISOString() }];
  });
}
