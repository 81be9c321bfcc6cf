import type { Random } from '../core/random.ts';
import { Secret } from '../core/secret.ts';
import type { Session } from '../core/session.ts';
import type { Store } from '../core/store.ts';
import { sha256 } from '../system/compare.ts';
import type { Surroundings } from './surroundings.ts';

/** Bytes of a refresh token of the hub's own. */
const TOKEN_BYTES = 32;

/** The sessions: what the hub's own refresh tokens stand for. */
export class Sessions {
  readonly #store: Store;
  readonly #clock: Surroundings['clock'];
  readonly #random: Random;
  readonly #byHash = new Map<string, Session>();

  private constructor(store: Store, { clock, random }: Pick<Surroundings, 'clock' | 'random'>) {
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
  }

  static async load(store: Store, surroundings: Pick<Surroundings, 'clock' | 'random'>): Promise<Sessions> {
    const sessions = new Sessions(store, surroundings);
    await sessions.#read();
    return sessions;
  }

  /**
   * Begins a session; the one that the same device flow began before is replaced by it.
   * @param appliance its id
   * @param device the `codeHash` of the device flow
   * @returns the refresh token
   */
  async begin(appliance: string, device: string): Promise<Secret> {
    const token = new Secret(this.#random.token(TOKEN_BYTES));
    await this.#store.saveSession({ hash: sha256(token.reveal()), appliance, device, begun: this.#clock.now() });
    await this.#read();
    return token;
  }

  /** Whether this is a refresh token that the appliance was given, and that still is good. */
  has(appliance: string, token: string): boolean {
    return this.#byHash.get(sha256(token))?.appliance === appliance;
  }

  /** Ends the session of this refresh token. @returns whether the appliance had it */
  async end(appliance: string, token: string): Promise<boolean> {
    if (!this.has(appliance, token)) return false;
    const hash = sha256(token);
    await this.#store.endSession(hash);
    this.#byHash.delete(hash);
    return true;
  }

  /** Ends all sessions of an appliance. */
  async endAll(appliance: string): Promise<void> {
    await this.#store.endSessions(appliance);
    await this.#read();
  }

  async #read(): Promise<void> {
    const sessions = await this.#store.sessions();
    this.#byHash.clear();
    for (const session of sessions) this.#byHash.set(session.hash, session);
  }
}
