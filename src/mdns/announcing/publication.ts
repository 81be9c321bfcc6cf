import type { Timers } from '../../core/clock.ts';
import { hasReducedTtl } from '../conflicts/conflict-detection.ts';
import { type ReceivedRecord, sameData } from '../records/record-data.ts';
import {
  addressRecords,
  foldCase,
  instancePointer,
  type ResourceRecord,
  SERVICE_TYPE_POINTER,
  type ServiceDescription,
  uniqueRecords,
} from '../records/records.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';

/**
 * In ms. RFC 6762 section 8.3 requires two announcements, a second apart; four, because Wi-Fi loses multicast packets.
 */
const REPEAT_DELAYS = [1000, 2000, 4000];
/** How long the hub may still receive its own packets with former names and addresses, in ms. */
const ECHO_WINDOW = 10_000;

/** The records that the hub has announced, and with which it responds to queries. */
export class Publication {
  readonly #timers: Timers;
  readonly #onError: (error: unknown) => void;
  #service: ServiceDescription | null = null;
  /** Former announcements, each with the function that cancels its timer. */
  readonly #recentServices = new Map<ServiceDescription, () => void>();
  #cancelRepeat: () => void = () => undefined;

  /** @param onError called if a repeated announcement can't be sent */
  constructor(timers: Timers, onError: (error: unknown) => void) {
    this.#timers = timers;
    this.#onError = onError;
  }

  /** The last announcement; null if there is none. */
  get service(): ServiceDescription | null {
    return this.#service;
  }

  /**
   * Announces the hub, and responds to queries for it. Its names must be free: see `probe`. If the hub was announced
   * before, this is an update: former addresses are withdrawn, but not the name.
   * @throws Error of the socket, if the first announcement can't be sent
   */
  async announce(link: MdnsLink, service: ServiceDescription): Promise<void> {
    const gone = this.#withdrawnAddresses(service);
    if (this.#service !== null) this.#keepForEcho(this.#service);
    this.#service = service;
    const records = [...goodbyeRecords(service), SERVICE_TYPE_POINTER];
    link.serve(records);
    this.#cancelRepeat();
    await this.#send(link, [...records, ...gone]);
  }

  /** Whether the hub has announced exactly this record, now or a moment ago. */
  hasAnnounced(record: ReceivedRecord): boolean {
    return [this.#service, ...this.#recentServices.keys()].some(
      (service) =>
        service !== null &&
        uniqueRecords(service).some((own) => foldCase(own.name) === foldCase(record.name) && sameData(own, record)),
    );
  }

  /** Whether these records make other devices drop the hub's records from their caches. */
  hasReducedTtl(records: readonly ReceivedRecord[]): boolean {
    return this.#service !== null && hasReducedTtl(goodbyeRecords(this.#service), records);
  }

  /** Repeats the last announcement. */
  async defend(link: MdnsLink): Promise<void> {
    if (this.#service !== null) await this.announce(link, this.#service);
  }

  /** Stops announcing and responding, without a goodbye. */
  stop(link: MdnsLink): void {
    this.#cancelRepeat();
    for (const cancel of this.#recentServices.values()) cancel();
    this.#recentServices.clear();
    link.serve([]);
  }

  /** For a hub that has lost its names: no goodbye will be sent for them. */
  discard(): void {
    this.#service = null;
  }

  /**
   * Sends a goodbye; resolves when it is sent, or when the network is down.
   * @param disputed whether another device claims the instance name: a goodbye would remove its record too, so that
   * only the addresses are withdrawn
   */
  async goodbye(link: MdnsLink, disputed: boolean): Promise<void> {
    this.stop(link);
    if (this.#service === null) return;
    const { host, addresses } = this.#service;
    const records = disputed ? addressRecords(host, addresses) : goodbyeRecords(this.#service);
    await link.respond(records.map((record) => ({ ...record, ttl: 0 }))).catch(() => undefined);
  }

  #keepForEcho(service: ServiceDescription): void {
    const forget = () => this.#recentServices.delete(service);
    this.#recentServices.get(service)?.();
    this.#recentServices.set(service, this.#timers.after(ECHO_WINDOW, forget));
  }

  #withdrawnAddresses({ host, addresses }: ServiceDescription): readonly ResourceRecord[] {
    const { host: before = host, addresses: known = [] } = this.#service ?? {};
    const gone = known.filter((one) => before !== host || !addresses.some(({ address }) => address === one.address));
    return addressRecords(before, gone).map((record) => ({ ...record, ttl: 0, flush: false }));
  }

  async #send(link: MdnsLink, records: readonly ResourceRecord[], [delay, ...later] = REPEAT_DELAYS): Promise<void> {
    if (delay !== undefined) {
      this.#cancelRepeat = this.#timers.after(delay, () => {
        this.#send(link, records, later).catch(this.#onError);
      });
    }
    await link.respond(records);
  }
}

function goodbyeRecords(service: ServiceDescription): readonly ResourceRecord[] {
  return [instancePointer(service.instanceName), ...uniqueRecords(service)];
}
