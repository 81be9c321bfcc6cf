import { type FailureCode, messageOf } from '../../core/failure.ts';
import type { LanAddress } from '../networks/lan-address.ts';
import type { LanState } from '../networks/lan-watch.ts';
import { OwnNetworks } from '../networks/segments.ts';
import { SegmentAdvertiser, type SegmentAdvertiserOptions } from './segment-advertiser.ts';

/** Options that stay the same while the hub is announced. */
export interface MdnsAdvertiserOptions extends Omit<SegmentAdvertiserOptions, 'ownNetworks' | 'onError'> {}

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

  /** Why the hub can't be announced on one segment or on all, as a message; null if there is no problem. */
  get announcementProblem(): string | null {
    const problems = this.#advertisers.flatMap(({ problem }) => problem ?? []);
    const problem = problems.find(({ code }) => code !== 'hub_name_claimed');
    if (problem) return messageOf(problem);
    if (this.#address === null) return 'no address on the home network yet';
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
