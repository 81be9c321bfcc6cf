import { Failure, messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { Segment } from '../networks/segments.ts';
import { toInstanceName } from '../records/records.ts';
import { Announcer, type AnnouncerOptions } from './announcer.ts';

/** What a {@link SegmentAdvertiser} takes. */
export interface SegmentAdvertiserOptions extends Omit<AnnouncerOptions, 'onRenamed' | 'onLost'> {
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`, as they are now. */
  txt(): Readonly<Record<string, string>>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/** How long after a failure the hub tries to announce itself again, in ms. */
const RETRY_INTERVAL = 5000;

/** How often the hub looks whether its own host name is free again, in ms. */
const CLAIMED_INTERVAL = 30_000;

/** Keeps the hub announced on one segment: tries again after a failure, and says what is wrong. */
export class SegmentAdvertiser {
  readonly #options: SegmentAdvertiserOptions;
  readonly #announcer: Announcer;
  #segment: Segment | null = null;
  #problem: Failure | null = null;
  /** What was reported last. */
  #reported = '';
  #cancelRetry: () => void = () => undefined;
  #left = false;

  constructor(options: SegmentAdvertiserOptions) {
    this.#options = options;
    this.#announcer = new Announcer({
      ...options,
      onRenamed: () => this.#settled(),
      onLost: (failure) => this.#failed(failure),
    });
  }

  /** Why the hub is not announced here, or not over both protocols, or not by its own host name; null if it is, or is about to be. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Whether the hub has its own name here, and none with a part of its id. */
  get hasOwnName(): boolean {
    return this.#announcer.instanceName === toInstanceName(this.#options.instanceName);
  }

  /** Whether it is on this segment already, by one of its interfaces at least. */
  shares({ interfaces }: Segment): boolean {
    return this.isAmong(new Set(interfaces.map(({ name }) => name)));
  }

  /** Whether one of these interfaces is its own. */
  isAmong(names: ReadonlySet<string>): boolean {
    return this.#segment?.interfaces.some(({ name }) => names.has(name)) === true;
  }

  /** Announces the hub on this segment, with its present TXT record. Does not throw: it tries again. */
  async moveTo(segment: Segment): Promise<void> {
    this.#segment = segment;
    this.#cancelRetry();
    const { httpsPort, txt } = this.#options;
    try {
      await this.#announcer.announce({ httpsPort, txt: txt(), segment });
      if (segment === this.#segment) this.#settled();
    } catch (error) {
      if (segment === this.#segment) {
        this.#failed(error instanceof Failure ? error : new Failure('unexpected', messageOf(error), { cause: error }));
      }
    }
  }

  /** @param silently without a goodbye: the hub stays with these neighbours, or is back in a moment */
  async leave(silently: boolean): Promise<void> {
    this.#left = true;
    this.#cancelRetry();
    await (silently ? this.#announcer.abandon() : this.#announcer[Symbol.asyncDispose]());
  }

  #settled(): void {
    if (this.#left || this.#segment === null) return;
    const { log } = this.#options;
    const { missing, claimed, instanceName: instance, host } = this.#announcer;
    if (missing !== null) {
      this.#failed(missing);
      return;
    }
    this.#problem = claimed;
    const { addresses, interfaces } = this.#segment;
    const fields = {
      instance,
      host,
      address: addresses.map(({ address }) => address).join(', '),
      interface: interfaces.map(({ name }) => name).join(', '),
    };
    const isNew = this.#isNew(JSON.stringify([fields, claimed?.message]));
    if (isNew) log.info('hub_announced', fields);
    if (claimed === null) return;
    if (isNew) {
      const error = claimed.message;
      log.warn('hub_name_claimed', { error, retry_in: CLAIMED_INTERVAL / 1000 });
    }
    this.#tryLater(CLAIMED_INTERVAL);
  }

  #failed(failure: Failure): void {
    if (this.#left) return;
    this.#problem = failure;
    const error = messageOf(failure);
    if (this.#isNew(error)) {
      this.#options.log.warn('announcement_failed', { error, retry_in: RETRY_INTERVAL / 1000 });
    }
    this.#tryLater(RETRY_INTERVAL);
  }

  #isNew(text: string): boolean {
    const isNew = text !== this.#reported;
    this.#reported = text;
    return isNew;
  }

  #tryLater(delay: number): void {
    this.#cancelRetry();
    const segment = this.#segment;
    this.#cancelRetry = this.#options.timers.after(delay, () => {
      if (segment !== null) void this.moveTo(segment);
    });
  }
}
