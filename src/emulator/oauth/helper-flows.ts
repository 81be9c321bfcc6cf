import * as v from 'valibot';
import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';
import { instantSchema } from '../json.ts';
import type { IssuedSecrets } from './issued-secrets.ts';
import { signWithSecret, verifyWithSecret } from './jwt.ts';

/** The content of a `state` of the helper flow. */
export interface HelperState {
  /** The JWT's `jti`. */
  readonly id: string;
  readonly clientId: string;
  /** The client's redirect_url for the code, or null if the client only polls. */
  readonly redirectUrl: string | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Result of verifying a state: good, expired, or foreign (forged, damaged, or bound to another client). */
type StateVerification =
  | { readonly kind: 'good'; readonly state: HelperState }
  | { readonly kind: 'expired' }
  | { readonly kind: 'foreign' };

const ISSUER = 'latchkey-emulator';

interface StateClaims {
  readonly jti: string;
  readonly aud: string;
  readonly exp: number;
  readonly redirect_url?: string;
}

/**
 * The `state` of the helper flow: a JWT that is unique, signed, and bound to its client by `aud` (docs/portal.md, 1).
 * The claims are the emulator's choice, because clients do not read them.
 */
export class HelperStates {
  readonly key: string;
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;

  /** @param key a secret text; the state file keeps it */
  constructor(key: string, now: () => number, issued: IssuedSecrets) {
    this.key = key;
    this.#now = now;
    this.#issued = issued;
  }

  /**
   * Issues a state for a client.
   * @param lifetime in seconds
   */
  issue(clientId: string, redirectUrl: string | null, lifetime: number): string {
    const iat = Math.floor(this.#now() / 1000);
    const claims = {
      iss: ISSUER,
      aud: clientId,
      jti: systemRandom.token(16),
      iat,
      exp: Math.floor(this.#now() / 1000 + lifetime),
      ...(redirectUrl !== null && { redirect_url: redirectUrl }),
    };
    return this.#issued.record('state', signWithSecret(claims, this.key));
  }

  /** Verifies signature, client and expiry. Without `clientId` it accepts a state of any client. */
  validate(jwt: string, clientId?: string): StateVerification {
    const claims = verifyWithSecret<StateClaims>(jwt, this.key);
    if (claims === null || (clientId !== undefined && claims.aud !== clientId)) return { kind: 'foreign' };
    const expiresAt = 1000 * claims.exp;
    if (expiresAt <= this.#now()) return { kind: 'expired' };
    const state = { id: claims.jti, clientId: claims.aud, redirectUrl: claims.redirect_url ?? null, expiresAt };
    return { kind: 'good', state };
  }
}

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
  /** The newest. */
  readonly polls: Poll[];
}

/** Flows kept, and polls kept of each. */
const MAX_FLOWS = 20_000;
export const MAX_POLLS = 1_000;

/**
 * The helper's state. A flow is stored at the first use of its state, so that unused config requests displace no flow.
 */
export class HelperFlows {
  readonly #flows = new BoundedMap<HelperFlow>(MAX_FLOWS);
  readonly #onLoginsChange: () => void;

  /** @param saved the flows of the state file, oldest first; polls are not restored */
  constructor(saved: readonly HelperFlow[], onLoginsChange: () => void) {
    for (const flow of saved) this.#flows.set(flow.state.id, { ...flow, polls: [] });
    this.#onLoginsChange = onLoginsChange;
  }

  /** The flow of a verified state. */
  getOrCreate(state: HelperState): HelperFlow {
    const known = this.#flows.get(state.id);
    if (known !== undefined) return known;
    const flow: HelperFlow = { state, code: null, done: false, login: null, polls: [] };
    this.#flows.set(state.id, flow);
    return flow;
  }

  /** Records that the login page of a state was opened at `now`, in milliseconds since 1970. */
  openLogin(state: HelperState, jwt: string, now: number): void {
    this.getOrCreate(state).login = { jwt, openedAt: now };
    this.#onLoginsChange();
  }

  denyLogin(state: HelperState): void {
    this.getOrCreate(state).login = null;
    this.#onLoginsChange();
  }

  deliverCode(state: HelperState, code: string): void {
    Object.assign(this.getOrCreate(state), { code, login: null });
    this.#onLoginsChange();
  }

  /** The flow with this state ID, if the state was used. */
  find(id: string): HelperFlow | undefined {
    return this.#flows.get(id);
  }

  all(): HelperFlow[] {
    return this.#flows.values();
  }
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
