import { messageOf } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import type { Session } from '../core/session.ts';
import type { Store } from '../core/store.ts';
import { sha256 } from '../system/compare.ts';
import type { Surroundings } from './surroundings.ts';

/** Bytes of a refresh token of the hub's own. */
const TOKEN_BYTES = 32;

type SessionStore = Pick<Store, 'sessions' | 'saveSession' | 'endSession'>;
type SessionSurroundings = Pick<Surroundings, 'clock' | 'random' | 'log'>;

/**
 * The sessions: what the hub's own refresh tokens stand for. While the store can't be written they begin and end in memory
 * alone; a refresh token that is not known any more after a restart costs its appliance another device flow.
 */
export class Sessions {
  readonly #store: SessionStore;
  readonly #surroundings: SessionSurroundings;
  #byHash = new Map<string, Session>();
  /** Not written yet, the oldest first. */
  #unsaved: Session[] = [];
  /** The hashes of those that have ended, and are still in the store. */
  readonly #ended = new Set<string>();

  private constructor(store: SessionStore, surroundings: SessionSurroundings) {
    this.#store = store;
    this.#surroundings = surroundings;
  }

  static async load(store: SessionStore, surroundings: SessionSurroundings): Promise<Sessions> {
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
    const { clock, random } = this.#surroundings;
    const token = new Secret(random.token(TOKEN_BYTES));
    const session = { hash: sha256(token.reveal()), appliance, device, begun: clock.now() };
    this.#unsaved = [...this.#unsaved.filter((other) => !isOfSameFlow(other, session)), session];
    await this.#write();
    return token;
  }

  /** Whether this is a refresh token that the appliance was given, and that still is good. */
  has(appliance: string, token: string): boolean {
    return this.#byHash.get(sha256(token))?.appliance === appliance;
  }

  /** Ends the session of this refresh token. @returns whether the appliance had it */
  async end(appliance: string, token: string): Promise<boolean> {
    if (!this.has(appliance, token)) return false;
    await this.#end([sha256(token)]);
    return true;
  }

  /** Ends all sessions of an appliance. */
  async endAll(appliance: string): Promise<void> {
    await this.#end([...this.#byHash.values()].filter((one) => one.appliance === appliance).map(({ hash }) => hash));
  }

  async #end(hashes: readonly string[]): Promise<void> {
    this.#unsaved = this.#unsaved.filter(({ hash }) => !hashes.includes(hash));
    for (const hash of hashes) {
      this.#ended.add(hash);
      this.#byHash.delete(hash);
    }
    await this.#write();
  }

  async #write(): Promise<void> {
    try {
      for (const hash of this.#ended) {
        await this.#store.endSession(hash);
        this.#ended.delete(hash);
      }
      for (const session of this.#unsaved) {
        await this.#store.saveSession(session);
        this.#unsaved = this.#unsaved.filter((one) => one !== session);
      }
      await this.#read();
    } catch (error) {
      this.#surroundings.log.error('store could not be written', { error: messageOf(error) });
      for (const session of this.#unsaved) this.#byHash.set(session.hash, session);
    }
  }

  /** The store keeps only the newest few of each appliance. */
  async #read(): Promise<void> {
    const stored = (await this.#store.sessions()).filter(({ hash }) => !this.#ended.has(hash));
    this.#byHash = new Map([...stored, ...this.#unsaved].map((session) => [session.hash, session]));
  }
}

function isOfSameFlow(a: Session, b: Session): boolean {
  return a.appliance === b.appliance && a.device === b.device;
}
