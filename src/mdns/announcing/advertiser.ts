import { Failure, type FailureCode, messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { LanAddress } from '../networks/lan-address.ts';
import type { LanState } from '../networks/lan-watch.ts';
import { OwnNetworks, type Segment } from '../networks/segments.ts';
import { toInstanceName } from '../records/records.ts';
import { MdnsResponder, type MdnsResponderOptions } from './mdns-responder.ts';

/** Options that stay the same while the hub is announced. */
interface MdnsAdvertiserOptions extends Omit<SegmentAdvertiserOptions, 'ownNetworks' | 'onError'> {}

/** The most log lines per interval: a device that makes the hub rename itself repeatedly must not fill the log. */
const MAX_LOG_LINES = 10;
/** In ms. */
const LOG_LINES_INTERVAL = 3_600_000;

/**
 * Keeps the hub announced, with one advertiser per segment; a loopback address has no segment.
 * Errors are logged once and retried, because a hub that can't be discovered still works.
 */
export class MdnsAdvertiser implements AsyncDisposable {
  readonly #options: MdnsAdvertiserOptions;
  #advertisers: readonly SegmentAdvertiser[] = [];
  #ownNetworks = new OwnNetworks([]);
  #address: LanAddress | null = null;
  #skipsGoodbye = false;
  #isDisposed = false;
  readonly #loggedErrors = new Set<string>();
  #loggedLines = 0;
  #cancelLineReset: () => void = () => undefined;

  constructor(options: MdnsAdvertiserOptions) {
    this.#options = options;
  }

  /** A message that another hub on the network has this hub's id and key; null if there is none. */
  get idConflict(): string | null {
    return this.#messageOf('hub_id_taken');
  }

  /** A message that another device claims the hub's own host name; null if none does. */
  get nameConflict(): string | null {
    return this.#messageOf('hub_name_claimed');
  }

  /**
   * Why the hub can't be announced on one segment or on all, as a message; null if there is no problem, or only a
   * conflict, or if the hub has no address that it could announce.
   */
  get announcementProblem(): string | null {
    if (this.#address === null || this.idConflict !== null) return null;
    const problems = this.#advertisers.flatMap(({ problem }) => problem ?? []);
    const problem = problems.find(({ code }) => code !== 'hub_name_claimed');
    if (problem) return messageOf(problem);
    const isNowhere = this.#advertisers.length === 0 && !this.#address.loopback;
    return isNowhere ? `no interface that supports mDNS has the address ${this.#address.address}` : null;
  }

  /** Announces the hub with its current TXT record on exactly these segments. Does nothing after the disposal. */
  async update(lan: Pick<LanState, 'address' | 'segments' | 'interfaceCidrs'>): Promise<void> {
    if (this.#isDisposed) return;
    this.#ownNetworks = new OwnNetworks(lan.interfaceCidrs);
    this.#address = lan.address;
    const before = new Set(this.#advertisers);
    this.#advertisers = lan.segments.map((segment) => {
      const known = [...before].find((advertiser) => advertiser.overlaps(segment));
      if (known !== undefined) before.delete(known);
      return known ?? this.#createAdvertiser();
    });
    const names = new Set(lan.segments.flatMap(({ interfaces }) => interfaces.map(({ name }) => name)));
    await Promise.all([
      ...[...before].map((advertiser) => advertiser.stop(advertiser.usesInterface(names))),
      ...lan.segments.map((segment, index) => this.#advertisers[index]?.announceOn(segment)),
    ]);
  }

  /**
   * For a restart: no goodbye on segments where the hub has its preferred name, because the next hub has it in a
   * moment.
   */
  skipGoodbye(): void {
    this.#skipsGoodbye = true;
  }

  /** Sends goodbyes and stops. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const advertisers = this.#advertisers;
    this.#advertisers = [];
    await Promise.all(
      advertisers.map((advertiser) => advertiser.stop(this.#skipsGoodbye && advertiser.hasPreferredName)),
    );
    this.#cancelLineReset();
  }

  #messageOf(code: FailureCode): string | null {
    return this.#advertisers.find(({ problem }) => problem?.code === code)?.problem?.message ?? null;
  }

  #createAdvertiser(): SegmentAdvertiser {
    return new SegmentAdvertiser({
      ...this.#options,
      ownNetworks: () => this.#ownNetworks,
      onError: (error) => this.#warnOnce(messageOf(error)),
      log: {
        info: (event, ...members) => {
          if (this.#mayLog()) this.#options.log.info(event, ...members);
        },
        warn: (event, ...members) => {
          if (this.#mayLog()) this.#options.log.warn(event, ...members);
        },
      },
    });
  }

  /** Logs each error once: sending may fail every few seconds while a network is down. */
  #warnOnce(message: string): void {
    if (this.#loggedErrors.has(message)) return;
    this.#loggedErrors.add(message);
    if (this.#mayLog()) this.#options.log.warn('mdns_failed', { error: message });
  }

  /** Counts a log line. @returns whether it is within the limit */
  #mayLog(): boolean {
    if (this.#loggedLines === 0) {
      this.#cancelLineReset = this.#options.timers.after(LOG_LINES_INTERVAL, () => {
        this.#loggedLines = 0;
      });
    }
    return this.#loggedLines++ < MAX_LOG_LINES;
  }
}

interface SegmentAdvertiserOptions extends Omit<MdnsResponderOptions, 'onRenamed' | 'onLost'> {
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
class SegmentAdvertiser {
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
