import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { didYouMean } from '../../system/did-you-mean.ts';
import type { Endpoint } from '../http/logged-request.ts';
import { FaultError } from './fault-body.ts';
import type { FaultOptions, FaultView, RequestFault, TlsFault } from './kinds.ts';
import type { OriginListener } from './origin-listener.ts';

/** The attributes of a request by which faults are selected. */
interface RequestAttributes {
  readonly endpoint: Endpoint;
  readonly client: string | null;
  readonly grantType: string | null;
}

/** A fault that applies to a request. */
export interface FaultMatch {
  readonly id: string;
  readonly fault: RequestFault;
}

/** The registered clients, and those of them that the emulator was started with. */
interface Clients {
  has(id: string): boolean;
  configured(): readonly { readonly id: string }[];
}

type Listeners = Readonly<Record<'base' | 'frontend', OriginListener>>;

interface FaultEntry {
  readonly number: number;
  readonly fault: FaultOptions;
  /** Requests or connections that matched. */
  met: number;
  /** How often it was applied. */
  hits: number;
  /** Remaining hits; null: no limit. */
  left: number | null;
}

/**
 * The faults, and the decision which requests they apply to. Random numbers derive from the seed, the fault's number
 * and its count of matching requests, so that the same sequence of requests meets the same faults again.
 */
export class Faults {
  readonly #seed: number;
  readonly #clients: Clients;
  readonly #listeners: Listeners;
  readonly #onChange: () => void;
  #entries: FaultEntry[] = [];
  #lastNumber = 0;

  /** @param onChange called when faults or their counts have changed */
  constructor(seed: number, clients: Clients, listeners: Listeners, onChange: () => void) {
    this.#seed = seed;
    this.#clients = clients;
    this.#listeners = listeners;
    this.#onChange = onChange;
    for (const [origin, listener] of Object.entries(listeners)) listener.matchFault = () => this.#matchTls(origin);
  }

  /**
   * Adds a validated fault, in force immediately.
   * @param spared the connection of the request that adds it, which stays open if its origin is taken down
   * @throws FaultError if the emulator can't apply the fault
   */
  add(fault: FaultOptions, spared?: Socket): FaultView {
    this.#rejectUnsupported(fault);
    this.#lastNumber += 1;
    const down = fault.kind === 'origin_down';
    const left = down ? 1 : (fault.times ?? null);
    const entry = { number: this.#lastNumber, fault, met: 0, hits: down ? 1 : 0, left };
    this.#entries.push(entry);
    if (down) {
      this.#listeners[fault.origin].takeDown(fault.seconds ?? null, spared, () => {
        entry.left = 0;
        this.#onChange();
      });
    }
    this.#onChange();
    return toFaultView(entry);
  }

  /** All faults, including used-up ones, oldest first. */
  all(): FaultView[] {
    return this.#entries.map(toFaultView);
  }

  /** Removes a fault. @returns false if no fault has this ID */
  async remove(id: string): Promise<boolean> {
    const entry = this.#entries.find(({ number }) => String(number) === id);
    if (entry === undefined) return false;
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#onChange();
    if (entry.fault.kind === 'origin_down' && entry.left === 1) await this.#listeners[entry.fault.origin].bringUp();
    return true;
  }

  /** Removes all faults. */
  async clear(): Promise<void> {
    await Promise.all(this.#entries.map(({ number }) => this.remove(String(number))));
  }

  /** Removes all faults, and restarts numbers and random numbers as at the start of the emulator. */
  async reset(): Promise<void> {
    await this.clear();
    this.#lastNumber = 0;
  }

  /** The fault that applies to this request, or null. Faults after that one do not count the request. */
  match(target: RequestAttributes): FaultMatch | null {
    for (const entry of this.#entries) {
      const { fault } = entry;
      if (fault.kind === 'tls_failure' || fault.kind === 'origin_down' || !appliesTo(fault, target)) continue;
      if (this.#tryApply(entry, fault)) return { id: String(entry.number), fault };
    }
    return null;
  }

  #matchTls(origin: string): TlsFault | null {
    for (const entry of this.#entries) {
      const { fault } = entry;
      if (fault.kind === 'tls_failure' && fault.origin === origin && this.#tryApply(entry, fault)) return fault;
    }
    return null;
  }

  #tryApply(entry: FaultEntry, { every = 1, probability = 1 }: RequestFault | TlsFault): boolean {
    if (entry.left === 0) return false;
    entry.met += 1;
    if (entry.met % every !== 0 || this.#drawRandom(entry) >= probability) return false;
    entry.hits += 1;
    if (entry.left !== null) entry.left -= 1;
    this.#onChange();
    return true;
  }

  /** From 0 (included) to 1 (excluded). */
  #drawRandom({ number, met }: FaultEntry): number {
    const drawn = createHash('sha256').update(`${this.#seed} ${number} ${met}`).digest();
    return drawn.readUInt32BE() / 2 ** 32;
  }

  #rejectUnsupported(fault: FaultOptions): void {
    if (fault.kind === 'origin_down' || fault.kind === 'tls_failure') {
      const problem = this.#listeners[fault.origin].unsupportedReason(fault.kind);
      if (problem !== null) throw new FaultError(problem);
      return;
    }
    if (fault.client !== undefined && !this.#clients.has(fault.client)) {
      const ids = this.#clients.configured().map(({ id }) => id);
      const suggestion = didYouMean(fault.client, ids);
      throw new FaultError(`client: must be the ID of a registered client${suggestion}`);
    }
    if (fault.grantType !== undefined && fault.endpoint !== 'token') {
      throw new FaultError(`endpoint: must be token for a fault with a grant type (found "${fault.endpoint}")`);
    }
  }
}

function appliesTo(fault: RequestFault, { endpoint, client, grantType }: RequestAttributes): boolean {
  if (fault.endpoint !== '*' && fault.endpoint !== endpoint) return false;
  if (fault.client !== undefined && fault.client !== client) return false;
  return fault.grantType === undefined || fault.grantType === grantType;
}

function toFaultView({ number, fault, hits, left }: FaultEntry): FaultView {
  return { id: String(number), ...fault, hits, left };
}
