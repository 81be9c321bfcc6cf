import type { Timers } from '../core/clock.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { LogFields } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import { Announcer } from './announcer.ts';
import type { Neighbourhood, OwnNetworks } from './neighbourhoods.ts';
import { toInstanceName } from './records.ts';

export interface PresenceOptions {
  readonly instanceName: string;
  readonly id: string;
  readonly httpsPort: number;
  txt(): Readonly<Record<string, string>>;
  readonly timers: Timers;
  readonly random: Random;
  ownNetworks(): OwnNetworks;
  /** Whether another server proves to be a copy of this hub. */
  isCopy(address: string, port: number, signal: AbortSignal): Promise<boolean>;
  onError(error: unknown): void;
  /** Hears where and as what the hub is announced, whenever that is another than before, or was not so in between. */
  onAnnounced(fields: LogFields): void;
  /** Hears of what keeps the hub from being announced, when it begins. */
  onProblem(fields: LogFields): void;
  /** Hears that another device claims the hub's own host name, when it begins. */
  onClaimed(fields: LogFields): void;
}

/** How long after a failure the hub tries to announce itself again, in ms. */
const RETRY = 5000;

/** How often the hub looks whether its own host name is free again, in ms. */
const CLAIMED_RETRY = 30_000;

/** The hub in one neighbourhood: announced there, or trying to be. */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #announcer: Announcer;
  #neighbourhood: Neighbourhood | null = null;
  #problem: Failure | null = null;
  /** What was said last. */
  #told = '';
  #cancelRetry: () => void = () => undefined;
  #left = false;

  constructor(options: PresenceOptions) {
    this.#options = options;
    this.#announcer = new Announcer({
      ...options,
      onRenamed: () => this.#settled(),
      onLost: (failure) => this.#failed(failure),
    });
  }

  /** Why the hub is not announced here, or not over both protocols, or not by its own host name; null where it is, or is about to be. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Whether the hub bears its own name here, and none with a part of its id. */
  get hasOwnName(): boolean {
    return this.#announcer.instanceName === toInstanceName(this.#options.instanceName);
  }

  /** Whether it is in this neighbourhood already, by one of its interfaces at least. */
  shares({ interfaces }: Neighbourhood): boolean {
    return this.isAmong(new Set(interfaces.map(({ name }) => name)));
  }

  /** Whether one of these interfaces is its own. */
  isAmong(names: ReadonlySet<string>): boolean {
    return this.#neighbourhood?.interfaces.some(({ name }) => names.has(name)) === true;
  }

  /** Announces the hub here, with what there is to say of it now. Does not throw: it tries again. */
  async moveTo(neighbourhood: Neighbourhood): Promise<void> {
    this.#neighbourhood = neighbourhood;
    this.#cancelRetry();
    const { httpsPort, txt } = this.#options;
    try {
      await this.#announcer.announce({ httpsPort, txt: txt(), neighbourhood });
      if (neighbourhood === this.#neighbourhood) this.#settled();
    } catch (error) {
      if (neighbourhood === this.#neighbourhood) {
        this.#failed(error instanceof Failure ? error : new Failure('unexpected', messageOf(error), { cause: error }));
      }
    }
  }

  /** @param silently nobody shall hear a goodbye: the hub stays with these neighbours, or is back in a moment */
  async leave(silently: boolean): Promise<void> {
    this.#left = true;
    this.#cancelRetry();
    await (silently ? this.#announcer.abandon() : this.#announcer[Symbol.asyncDispose]());
  }

  #settled(): void {
    if (this.#left || this.#neighbourhood === null) return;
    const { missing, claimed, instanceName: instance, host } = this.#announcer;
    if (missing !== null) {
      this.#failed(missing);
      return;
    }
    this.#problem = claimed;
    const { addresses, interfaces } = this.#neighbourhood;
    const fields = {
      instance,
      host,
      address: addresses.map(({ address }) => address).join(', '),
      interface: interfaces.map(({ name }) => name).join(', '),
    };
    const isNew = this.#isNew(JSON.stringify([fields, claimed?.message]));
    if (isNew) this.#options.onAnnounced(fields);
    if (claimed === null) return;
    if (isNew) this.#options.onClaimed({ error: claimed.message, retry_in: CLAIMED_RETRY / 1000 });
    this.#tryLater(CLAIMED_RETRY);
  }

  #failed(failure: Failure): void {
    if (this.#left) return;
    this.#problem = failure;
    const error = messageOf(failure);
    if (this.#isNew(error)) this.#options.onProblem({ error, retry_in: RETRY / 1000 });
    this.#tryLater(RETRY);
  }

  #isNew(text: string): boolean {
    const isNew = text !== this.#told;
    this.#told = text;
    return isNew;
  }

  #tryLater(delay: number): void {
    this.#cancelRetry();
    const neighbourhood = this.#neighbourhood;
    this.#cancelRetry = this.#options.timers.after(delay, () => {
      if (neighbourhood !== null) void this.moveTo(neighbourhood);
    });
  }
}
