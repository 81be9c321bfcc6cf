import type { Timers } from '../core/clock.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import { type Announcement, announce } from '../mdns/announcer.ts';
import type { LanAddress } from '../mdns/lan-address.ts';

/** What of the announcement does not change. */
export interface AnnouncingOptions {
  readonly instanceName: string;
  readonly id: string;
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`, as they are now. */
  txt(): Readonly<Record<string, string>>;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
}

/** How long after a failure the hub tries to announce itself again, in ms. */
const RETRY = 30_000;

/**
 * Keeps the hub announced at its present address; without one, and on loopback, there is nobody to tell. What goes
 * wrong is logged and tried again: a hub that can't be discovered still does its work.
 */
export class Announcing implements AsyncDisposable {
  readonly #options: AnnouncingOptions;
  #wanted: LanAddress | null = null;
  #announcement: Announcement | null = null;
  #taken: string | null = null;
  #work: Promise<void> = Promise.resolve();
  #cancelRetry: () => void = () => undefined;
  #stopped = false;

  constructor(options: AnnouncingOptions) {
    this.#options = options;
  }

  /** In words, that another hub on the network has this one's id; null where none has. */
  get taken(): string | null {
    return this.#taken;
  }

  /** Announces the hub, with what there is to say of it now, at this address from now on, and nowhere else. */
  moveTo(address: LanAddress | null): Promise<void> {
    this.#wanted = address?.loopback ? null : address;
    this.#cancelRetry();
    this.#work = this.#work.then(() => this.#follow());
    return this.#work;
  }

  /** Says goodbye. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.moveTo(null);
  }

  async #follow(): Promise<void> {
    const { log, timers, txt, ...options } = this.#options;
    const address = this.#wanted;
    try {
      if (address === null) {
        const announcement = this.#announcement;
        this.#announcement = null;
        await announcement?.[Symbol.asyncDispose]();
      } else if (this.#announcement !== null) {
        await this.#announcement.update({ address, txt: txt() });
      } else {
        const onError = (error: unknown) => log.warn('announcing had an error', { error: messageOf(error) });
        this.#announcement = await announce({ ...options, txt: txt(), timers, address, onError });
        log.info('announced', { instance: this.#announcement.instanceName, address: address.address });
      }
      this.#taken = null;
    } catch (error) {
      this.#taken = error instanceof Failure && error.code === 'hub_id_taken' ? error.message : null;
      log.warn('hub could not be announced', { error: messageOf(error), retry_in: RETRY / 1000 });
      if (!this.#stopped) this.#cancelRetry = timers.after(RETRY, () => void this.moveTo(address));
    }
  }
}
