import { Failure, messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { Segment } from '../networks/segments.ts';
import { toInstanceName } from '../records/records.ts';
import { MdnsResponder, type MdnsResponderOptions } from './mdns-responder.ts';

/** What a {@link SegmentAdvertiser} takes. */
export interface SegmentAdvertiserOptions extends Omit<MdnsResponderOptions, 'onRenamed' | 'onLost'> {
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`, as they are now. */
  txt(): Readonly<Record<string, string>>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/** How long after a failure the hub tries to announce itself again, in ms. */
const RETRY_INTERVAL = 5000;

/** How often the hub looks whether its own host name is free again, in ms. */
const RECLAIM_INTERVAL = 30_000;

/** Keeps the hub announced on one segment: tries again after a failure, and says what is wrong. */
export class SegmentAdvertiser {
  readonly #options: SegmentAdvertiserOptions;
  readonly #responder: MdnsResponder;
  #segment: Segment | null = null;
  #problem: Failure | null = null;
  /** What was reported last. */
  #lastReported = '';
  #cancelRetry: () => void = () => undefined;
  #isStopped = false;

  constructor(options: SegmentAdvertiserOptions) {
    this.#options = options;
    this.#responder = new MdnsResponder({
      ...options,
      onRenamed: () => this.#reportAnnounced(),
      onLost: (failure) => this.#reportFailure(failure),
    });
  }

  /** Why the hub is not announced here, or not over both protocols, or not by its own host name; null if it is, or is about to be. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Whether the hub has its own name here, and none with a part of its id. */
  get hasPreferredName(): boolean {
    return this.#responder.instanceName === toInstanceName(this.#options.instanceName);
  }

  /** Whether it is on this segment already, by one of its interfaces at least. */
  overlaps({ interfaces }: Segment): boolean {
    return this.usesInterface(new Set(interfaces.map(({ name }) => name)));
  }

  /** Whether one of these interfaces is its own. */
  usesInterface(names: ReadonlySet<string>): boolean {
    return this.#segment?.interfaces.some(({ name }) => names.has(name)) === true;
  }

  /** Announces the hub on this segment, with its present TXT record. Does not throw: it tries again. */
  async announceOn(segment: Segment): Promise<void> {
    this.#segment = segment;
    this.#cancelRetry();
    const { httpsPort, txt } = this.#options;
    try {
      await this.#responder.announce({ httpsPort, txt: txt(), segment });
      if (segment === this.#segment) this.#reportAnnounced();
    } catch (error) {
      if (segment === this.#segment) {
        this.#reportFailure(
          error instanceof Failure ? error : new Failure('unexpected', messageOf(error), { cause: error }),
        );
      }
    }
  }

  /** @param silently without a goodbye: the hub stays with these neighbours, or is back in a moment */
  async stop(silently: boolean): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry();
    await (silently ? this.#responder.closeSilently() : this.#responder[Symbol.asyncDispose]());
  }

  #reportAnnounced(): void {
    if (this.#isStopped || this.#segment === null) return;
    const { log } = this.#options;
    const { socketProblem: missing, nameConflict: claimed, instanceName: instance, host } = this.#responder;
    if (missing !== null) {
      this.#reportFailure(missing);
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
    const isNew = this.#isUnreported(JSON.stringify([fields, claimed?.message]));
    if (isNew) log.info('hub_announced', fields);
    if (claimed === null) return;
    if (isNew) {
      const error = claimed.message;
      log.warn('hub_name_claimed', { error, retry_in: RECLAIM_INTERVAL / 1000 });
    }
    this.#scheduleRetry(RECLAIM_INTERVAL);
  }

  #reportFailure(failure: Failure): void {
    if (this.#isStopped) return;
    this.#problem = failure;
    const error = messageOf(failure);
    if (this.#isUnreported(error)) {
      this.#options.log.warn('announcement_failed', { error, retry_in: RETRY_INTERVAL / 1000 });
    }
    this.#scheduleRetry(RETRY_INTERVAL);
  }

  #isUnreported(text: string): boolean {
    const isNew = text !== this.#lastReported;
    this.#lastReported = text;
    return isNew;
  }

  #scheduleRetry(delay: number): void {
    this.#cancelRetry();
    const segment = this.#segment;
    this.#cancelRetry = this.#options.timers.after(delay, () => {
      if (segment !== null) void this.announceOn(segment);
    });
  }
}
