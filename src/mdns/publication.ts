import type { Timers } from '../core/clock.ts';
import { isShortened } from './claims.ts';
import type { Link } from './link.ts';
import { type ReceivedRecord, sameData } from './record-data.ts';
import {
  addressRecords,
  foldCase,
  instancePointer,
  ownRecords,
  type ResourceRecord,
  type ServiceDescription,
  TYPE_POINTER,
} from './records.ts';

/** RFC 6762 section 8.3 wants two announcements, a second apart; wireless networks lose multicast, so it is four. */
const REPEATS = [1000, 2000, 4000];
/** What the hub said before it took other names may come back to it for so long, in ms. */
const ECHO = 10_000;

/** What is announced, and answered to who asks for it. */
export class Publication {
  readonly #timers: Timers;
  readonly #onError: (error: unknown) => void;
  #service: ServiceDescription | null = null;
  /** What was announced before that under another name. */
  #before: ServiceDescription | null = null;
  #cancelRepeat: () => void = () => undefined;
  #cancelForget: () => void = () => undefined;

  /** @param onError hears when a repetition could not be sent */
  constructor(timers: Timers, onError: (error: unknown) => void) {
    this.#timers = timers;
    this.#onError = onError;
  }

  /** What was announced last. */
  get service(): ServiceDescription | null {
    return this.#service;
  }

  /**
   * Announces the hub, and answers who asks for it. Its names have to be free: see `probe`. Who knows of it takes it for a
   * change: the addresses that are no more among the hub's are taken back, but not its name.
   * @throws Error as the socket gives it, where not even the first announcement could be sent
   */
  async announce(link: Link, service: ServiceDescription): Promise<void> {
    const gone = this.#addressesWithout(service);
    if (this.#service !== null && this.#service.host !== service.host) this.#rememberBefore(this.#service);
    this.#service = service;
    const records = [...removable(service), TYPE_POINTER];
    link.serve(records);
    this.#cancelRepeat();
    await this.#say(link, [...records, ...gone]);
  }

  /** Whether the hub has announced this service just so, now or a moment ago. */
  hasSaid(record: ReceivedRecord): boolean {
    return [this.#service, this.#before].some(
      (service) =>
        service !== null &&
        ownRecords(service).some(
          (own) => own.type === 'SRV' && foldCase(own.name) === foldCase(record.name) && sameData(own, record),
        ),
    );
  }

  /** Whether somebody lets neighbours forget what is announced. */
  isShortened(records: readonly ReceivedRecord[]): boolean {
    return this.#service !== null && isShortened(removable(this.#service), records);
  }

  /** Says again what is announced. */
  async defend(link: Link): Promise<void> {
    if (this.#service !== null) await this.announce(link, this.#service);
  }

  /** Announces and answers no more, and leaves it to its neighbours to forget the hub. */
  stop(link: Link): void {
    this.#cancelRepeat();
    this.#cancelForget();
    this.#before = null;
    link.serve([]);
  }

  /** Its names are another one's now. */
  lose(): void {
    this.#service = null;
  }

  /**
   * Says goodbye; resolves when that is on the wire. Where the network is gone, nobody is left to hear it.
   * @param disputed another one has claimed the hub's name, and a goodbye may hit that: only the addresses are taken back
   */
  async goodbye(link: Link, disputed: boolean): Promise<void> {
    this.stop(link);
    if (this.#service === null) return;
    const { host, addresses } = this.#service;
    const records = disputed ? addressRecords(host, addresses) : removable(this.#service);
    await link.respond(records.map((record) => ({ ...record, ttl: 0 }))).catch(() => undefined);
  }

  #rememberBefore(service: ServiceDescription): void {
    this.#before = service;
    this.#cancelForget();
    this.#cancelForget = this.#timers.after(ECHO, () => {
      this.#before = null;
    });
  }

  #addressesWithout({ host, addresses }: ServiceDescription): readonly ResourceRecord[] {
    const { host: before = host, addresses: known = [] } = this.#service ?? {};
    const gone = known.filter((one) => before !== host || !addresses.some(({ address }) => address === one.address));
    return addressRecords(before, gone).map((record) => ({ ...record, ttl: 0, flush: false }));
  }

  async #say(link: Link, records: readonly ResourceRecord[], [delay, ...later] = REPEATS): Promise<void> {
    if (delay !== undefined) {
      this.#cancelRepeat = this.#timers.after(delay, () => {
        this.#say(link, records, later).catch(this.#onError);
      });
    }
    await link.respond(records);
  }
}

function removable(service: ServiceDescription): readonly ResourceRecord[] {
  return [instancePointer(service.instanceName), ...ownRecords(service)];
}
