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

/** RFC 6762 section 8.3 wants two announcements, a second apart; wireless networks lose multicast, so it is four. */
const REPEAT_DELAYS = [1000, 2000, 4000];
/** For how long the hub's own packets with its former names and addresses may come back to it, in ms. */
const ECHO_WINDOW = 10_000;

/** The records that the hub has announced, and answers queries with. */
export class Publication {
  readonly #timers: Timers;
  readonly #onError: (error: unknown) => void;
  #service: ServiceDescription | null = null;
  /** What was announced before, each with what keeps it from being forgotten when its time is over. */
  readonly #recentServices = new Map<ServiceDescription, () => void>();
  #cancelRepeat: () => void = () => undefined;

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
   * Announces the hub, and answers queries for it. Its names have to be free: see `probe`. Neighbours that know it take it for
   * a change: addresses that the hub no longer has are taken back, but not its name.
   * @throws Error as the socket gives it, if not even the first announcement could be sent
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

  /** Whether the hub has announced this record just so, now or a moment ago. */
  hasAnnounced(record: ReceivedRecord): boolean {
    return [this.#service, ...this.#recentServices.keys()].some(
      (service) =>
        service !== null &&
        uniqueRecords(service).some((own) => foldCase(own.name) === foldCase(record.name) && sameData(own, record)),
    );
  }

  /** Whether these records let neighbours forget what is announced. */
  hasReducedTtl(records: readonly ReceivedRecord[]): boolean {
    return this.#service !== null && hasReducedTtl(goodbyeRecords(this.#service), records);
  }

  /** Announces the same again. */
  async defend(link: MdnsLink): Promise<void> {
    if (this.#service !== null) await this.announce(link, this.#service);
  }

  /** Stops announcing and answering, without a goodbye. */
  stop(link: MdnsLink): void {
    this.#cancelRepeat();
    for (const cancel of this.#recentServices.values()) cancel();
    this.#recentServices.clear();
    link.serve([]);
  }

  /** The hub has lost its names: it does not say goodbye for them. */
  discard(): void {
    this.#service = null;
  }

  /**
   * Says goodbye; resolves when that is on the wire, or the network is gone.
   * @param disputed another device has claimed the instance name, and a goodbye would hit it too: only the addresses are taken back
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
