import { Failure, messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { Segment } from '../networks/segments.ts';
import { toInstanceName } from '../records/records.ts';
import { MdnsResponder, type MdnsResponderOptions } from './mdns-responder.ts';

/** Options of a {@link SegmentAdvertiser}. */
export interface SegmentAdvertiserOptions extends Omit<MdnsResponderOptions, 'onRenamed' | 'onLost'> {
  readonly httpsPort: number;
  /** The current keys of the TXT record besides `txtvers` and `id`. */
  txt(): Readonly<Record<string, string>>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/** How long after a failure the hub tries to announce itself again, in ms. */
const RETRY_INTERVAL = 5000;

/** How often the hub probes whether its own host name is free again, in ms. */
const RECLAIM_INTERVAL = 30_000;

/** Keeps the hub announced on one segment: retries after a failure, and reports the problem. */
export class SegmentAdvertiser {
  readonly #options: SegmentAdvertiserOptions;
  readonly #responder: MdnsResponder;
  #segment: Segment | null = null;
  #problem: Failure | null = null;
  /** The last report, so that it is not logged again. */
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

  /**
   * Why the hub is not announced here, or only over one IP version, or under another host name; null if there is no
   * problem.
   */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Whether the instance name is the hub's name, without a part of its id. */
  get hasPreferredName(): boolean {
    return this.#responder.instanceName === toInstanceName(this.#options.instanceName);
  }

  /** Whether it shares an interface with this segment. */
  overlaps({ interfaces }: Segment): boolean {
    return this.usesInterface(new Set(interfaces.map(({ name }) => name)));
  }

  /** Whether it uses one of these interfaces. */
  usesInterface(names: ReadonlySet<string>): boolean {
    return this.#segment?.interfaces.some(({ name }) => names.has(name)) === true;
  }

  /** Announces the hub on this segment with its current TXT record. Does not throw: failures are retried. */
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

  /** @param silently without a goodbye, because the hub stays on this network or returns in a moment */
  async stop(silently: boolean): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry();
    await (silently ? this.#responder.closeSilently() : this.#responder[Symbol.asyncDispose]());
  }

  #reportAnnounced(): void {
    if (this.#isStopped || this.#segment === null) return;
    const { log } = this.#options;
    const { socketProblem, nameConflict, instanceName: instance, host } = this.#responder;
    if (socketProblem !== null) {
      this.#reportFailure(socketProblem);
      return;
    }
    this.#problem = nameConflict;
    const { addresses, interfaces } = this.#segment;
    const fields = {
      instance,
      host,
      address: addresses.map(({ address }) => address).join(', '),
      interface: interfaces.map(({ name }) => name).join(', '),
    };
    const isNew = this.#isUnreported(JSON.stringify([fields, nameConflict?.message]));
    if (isNew) log.info('hub_announced', fields);
    if (nameConflict === null) return;
    if (isNew) {
      const error = nameConflict.message;
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
