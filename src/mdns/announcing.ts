import type { Timers } from '../core/clock.ts';
import { type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { LanAddress } from './lan-address.ts';
import type { Lan } from './lan-watch.ts';
import { OwnNetworks } from './neighbourhoods.ts';
import { Presence } from './presence.ts';

/** What of the announcement does not change. */
export interface AnnouncingOptions {
  readonly instanceName: string;
  readonly id: string;
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`, as they are now. */
  txt(): Readonly<Record<string, string>>;
  /** Whether another server proves to be a copy of this hub. */
  isCopy(address: string, port: number, signal: AbortSignal): Promise<boolean>;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
}

/** So many lines in so many ms: a neighbour that makes the hub change its name again and again must not fill the log. */
const MOST_LINES = 10;
const LINES_PERIOD = 3_600_000;

/**
 * Keeps the hub announced in every neighbourhood, each for itself; without one, and on loopback, there is nobody to tell.
 * What goes wrong is logged once and tried again: a hub that can't be discovered still does its work.
 */
export class Announcing implements AsyncDisposable {
  readonly #options: AnnouncingOptions;
  #presences: readonly Presence[] = [];
  #ownNetworks = new OwnNetworks([]);
  #address: LanAddress | null = null;
  #comesBack = false;
  readonly #errors = new Set<string>();
  #lines = 0;
  #cancelLines: () => void = () => undefined;

  constructor(options: AnnouncingOptions) {
    this.#options = options;
  }

  /** In words, that another hub on the network has this one's id and key; null where none has. */
  get taken(): string | null {
    return this.#messageOf('hub_id_taken');
  }

  /** In words, that another device claims the hub's own host name; null where none does. */
  get claimed(): string | null {
    return this.#messageOf('hub_name_claimed');
  }

  /** In words, what keeps the hub from being announced, in one neighbourhood or in all; null where nothing does. */
  get waitingFor(): string | null {
    const problems = this.#presences.flatMap(({ problem }) => problem ?? []);
    const problem = problems.find(({ code }) => code !== 'hub_name_claimed');
    if (problem) return messageOf(problem);
    if (this.#address === null) return 'no address on the home network yet';
    const isNowhere = this.#presences.length === 0 && !this.#address.loopback;
    return isNowhere ? `no interface that mDNS can be spoken on has ${this.#address.address}` : null;
  }

  /** Announces the hub, with what there is to say of it now, in these neighbourhoods from now on, and nowhere else. */
  async follow(lan: Pick<Lan, 'address' | 'neighbourhoods' | 'attached'>): Promise<void> {
    this.#ownNetworks = new OwnNetworks(lan.attached);
    this.#address = lan.address;
    const before = new Set(this.#presences);
    this.#presences = lan.neighbourhoods.map((neighbourhood) => {
      const known = [...before].find((presence) => presence.shares(neighbourhood));
      if (known !== undefined) before.delete(known);
      return known ?? this.#appear();
    });
    const names = new Set(lan.neighbourhoods.flatMap(({ interfaces }) => interfaces.map(({ name }) => name)));
    await Promise.all([
      ...[...before].map((presence) => presence.leave(presence.isAmong(names))),
      ...lan.neighbourhoods.map((neighbourhood, index) => this.#presences[index]?.moveTo(neighbourhood)),
    ]);
  }

  /** Another hub of the same name follows this one in a moment: it shall leave without a goodbye, where it bears that name. */
  comeBack(): void {
    this.#comesBack = true;
  }

  /** Says goodbye. */
  async [Symbol.asyncDispose](): Promise<void> {
    const presences = this.#presences;
    this.#presences = [];
    await Promise.all(presences.map((presence) => presence.leave(this.#comesBack && presence.hasOwnName)));
    this.#cancelLines();
  }

  #messageOf(code: FailureCode): string | null {
    return this.#presences.find(({ problem }) => problem?.code === code)?.problem?.message ?? null;
  }

  #appear(): Presence {
    const { log, ...options } = this.#options;
    return new Presence({
      ...options,
      ownNetworks: () => this.#ownNetworks,
      onError: (error) => this.#complain(messageOf(error)),
      onAnnounced: (fields) => this.#tell(() => log.info('announced', fields)),
      onClaimed: (fields) => this.#tell(() => log.warn('another device claims the name of the hub', fields)),
      onProblem: (fields) => this.#tell(() => log.warn('hub could not be announced', fields)),
    });
  }

  /** Each error once: sending may fail every few seconds while a network is away. */
  #complain(message: string): void {
    if (this.#errors.has(message)) return;
    this.#errors.add(message);
    this.#tell(() => this.#options.log.warn('announcing had an error', { error: message }));
  }

  #tell(write: () => void): void {
    if (this.#lines === 0) {
      this.#cancelLines = this.#options.timers.after(LINES_PERIOD, () => {
        this.#lines = 0;
      });
    }
    if (this.#lines++ < MOST_LINES) write();
  }
}
