import { type FailureCode, messageOf } from '../../core/failure.ts';
import type { LanAddress } from '../networks/lan-address.ts';
import type { LanState } from '../networks/lan-watch.ts';
import { OwnNetworks } from '../networks/segments.ts';
import { SegmentAdvertiser, type SegmentAdvertiserOptions } from './segment-advertiser.ts';

/** What does not change while the hub is announced. */
export interface MdnsAdvertiserOptions extends Omit<SegmentAdvertiserOptions, 'ownNetworks' | 'onError'> {}

/** Log lines in an interval in ms: a neighbour that makes the hub change its name again and again must not fill the log. */
const MAX_LOG_LINES = 10;
const LOG_LINES_INTERVAL = 3_600_000;

/**
 * Keeps the hub announced on every segment, each by itself; on loopback there is none.
 * What goes wrong is logged once and tried again: a hub that can't be discovered still does its work.
 */
export class MdnsAdvertiser implements AsyncDisposable {
  readonly #options: MdnsAdvertiserOptions;
  #advertisers: readonly SegmentAdvertiser[] = [];
  #ownNetworks = new OwnNetworks([]);
  #address: LanAddress | null = null;
  #skipsGoodbye = false;
  readonly #loggedErrors = new Set<string>();
  #loggedLines = 0;
  #cancelLineReset: () => void = () => undefined;

  constructor(options: MdnsAdvertiserOptions) {
    this.#options = options;
  }

  /** In words, that another hub on the network has this one's id and key; null where none has. */
  get idConflict(): string | null {
    return this.#messageOf('hub_id_taken');
  }

  /** In words, that another device claims the hub's own host name; null where none does. */
  get nameConflict(): string | null {
    return this.#messageOf('hub_name_claimed');
  }

  /** In words, what keeps the hub from being announced, on one segment or on all; null if nothing does. */
  get announcementProblem(): string | null {
    const problems = this.#advertisers.flatMap(({ problem }) => problem ?? []);
    const problem = problems.find(({ code }) => code !== 'hub_name_claimed');
    if (problem) return messageOf(problem);
    if (this.#address === null) return 'no address on the home network yet';
    const isNowhere = this.#advertisers.length === 0 && !this.#address.loopback;
    return isNowhere ? `no interface that mDNS can be spoken on has ${this.#address.address}` : null;
  }

  /** Announces the hub, with its present TXT record, on these segments from now on, and nowhere else. */
  async update(lan: Pick<LanState, 'address' | 'segments' | 'interfaceCidrs'>): Promise<void> {
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

  /** Another hub of the same name follows this one in a moment: it leaves without a goodbye where it has that name. */
  skipGoodbye(): void {
    this.#skipsGoodbye = true;
  }

  /** Says goodbye. */
  async [Symbol.asyncDispose](): Promise<void> {
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

  /** Each error once: sending may fail every few seconds while a network is away. */
  #warnOnce(message: string): void {
    if (this.#loggedErrors.has(message)) return;
    this.#loggedErrors.add(message);
    if (this.#mayLog()) this.#options.log.warn('mdns_failed', { error: message });
  }

  /** Counts a line. */
  #mayLog(): boolean {
    if (this.#loggedLines === 0) {
      this.#cancelLineReset = this.#options.timers.after(LOG_LINES_INTERVAL, () => {
        this.#loggedLines = 0;
      });
    }
    return this.#loggedLines++ < MAX_LOG_LINES;
  }
}
