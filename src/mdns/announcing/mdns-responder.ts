import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import { detectConflict, type NameClaim, servicePort } from '../conflicts/conflict-detection.ts';
import { type ProbeOptions, probe } from '../conflicts/probe.ts';
import type { OwnNetworks, Segment } from '../networks/segments.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import { type ServiceDescription, uniqueRecords } from '../records/records.ts';
import { InterfaceSockets } from '../sockets/interface-sockets.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';
import { Throttle } from '../sockets/rate-limits.ts';
import { duplicateHubFailure, HubNames } from './hub-names.ts';
import { Publication } from './publication.ts';

/** The data that may change while the hub is announced. */
interface Announcement {
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`: `v`, `http`, `capk`. */
  readonly txt: Readonly<Record<string, string>>;
  readonly segment: Segment;
}

export interface MdnsResponderOptions {
  /** The hub's name, as configured. */
  readonly instanceName: string;
  /** The hub's stable id, a DNS label: see `hostNames`. */
  readonly id: string;
  readonly timers: Timers;
  readonly random: Random;
  /** This machine's current addresses. */
  ownNetworks(): OwnNetworks;
  /**
   * Whether the HTTPS server at this address proves to be a clone of this hub, which means that it has the hub's CA
   * key. Any device can claim a name, so a name proves nothing. Does not throw; may return false at once if it was
   * called shortly before.
   */
  isClone(address: string, port: number, signal: AbortSignal): Promise<boolean>;
  /** Called with errors of the sockets while the hub is announced. */
  onError(error: unknown): void;
  /** Called when the hub has changed its names because another device claims its own, or when that claim is gone. */
  onRenamed(): void;
  /** Called when the hub is no longer announced, because a clone of it was found. */
  onLost(failure: Failure): void;
}

/**
 * The shortest time between two announcements against another device that withdraws the hub's records, in ms: the same
 * as between two multicasts of a record (RFC 6762 section 6).
 */
const RESCUE_INTERVAL = 1000;
/**
 * In ms. RFC 6762 section 8.1 allows 15 conflicts in ten seconds; this allows 4, however often a device claims a name.
 */
const CONFLICT_BACKOFF = { first: 1000, longest: 60_000 };

/**
 * Announces the hub as a `_latchkey._tcp` service on one segment, until it is disposed of.
 *
 * Its names may differ from start to start (see {@link HubNames}); appliances know the hub by its id and its pin. It
 * falls silent only beside a clone, a device that has the hub's key.
 *
 * A conflict may also arise later, when two networks are joined. Then the host with the lesser data probes again and
 * takes another name (RFC 6762 section 9). It never sends a goodbye for the lost name, because that would remove the
 * other host's record from caches.
 */
export class MdnsResponder implements AsyncDisposable {
  readonly #options: MdnsResponderOptions;
  readonly #sockets: InterfaceSockets;
  readonly #publication: Publication;
  readonly #names: HubNames;
  readonly #conflictThrottle: Throttle;
  readonly #rescueThrottle: Throttle;
  /** Aborts the probing before the first announcement. */
  readonly #initialProbeAbort = new AbortController();
  readonly #stopAbort = new AbortController();
  #ended = false;
  #announcement: Announcement | null = null;
  /** The port of a foreign service that is announced on the hub's own host name; null if there is none. */
  #rivalPort: number | null = null;
  /** The instance name of the hub at the last conflict. */
  #disputedName: string | null = null;
  #stopListening: () => void = () => undefined;
  /** One change after another, because two sockets must not claim the same name. */
  readonly #queue = new SerialQueue();

  constructor(options: MdnsResponderOptions) {
    this.#options = options;
    const { instanceName, id, timers, onError, ownNetworks } = options;
    const acceptsSource = (source: string) => ownNetworks().acceptsSource(source, this.#interfaces);
    this.#sockets = new InterfaceSockets({ onError, timers, acceptsSource });
    this.#publication = new Publication(timers, onError);
    this.#names = new HubNames(instanceName, id);
    this.#conflictThrottle = new Throttle(timers, CONFLICT_BACKOFF.first, CONFLICT_BACKOFF.longest);
    this.#rescueThrottle = new Throttle(timers, RESCUE_INTERVAL);
  }

  /** The name that appliances see. */
  get instanceName(): string {
    return this.#names.current.instance;
  }

  /** The host name that appliances see, with `.local`. */
  get host(): string {
    return this.#names.current.host;
  }

  /** The failure if another device claims the hub's names; else null. The hub is announced nevertheless. */
  get nameConflict(): Failure | null {
    return this.#names.nameConflict;
  }

  /**
   * Why a socket of the segment could not be opened, while the hub is announced on the others; null if all are open.
   */
  get socketProblem(): Failure | null {
    return this.#sockets.problem;
  }

  /**
   * Announces the hub, or updates its announcement; unchanged records are not withdrawn in between. Probes only on new
   * interfaces, and if the host name was claimed. May be called again after a failure.
   * @throws Failure `port_unavailable` if mDNS can't be used on the segment; `hub_id_taken` if another hub has this
   * hub's id and key, for example because its SD card was copied
   */
  announce(announcement: Announcement): Promise<void> {
    return this.#queue.run(async () => {
      try {
        await this.#update(announcement);
      } catch (cause) {
        if (cause instanceof Failure) throw cause;
        const names = announcement.segment.interfaces.map(({ name }) => name).join(', ');
        throw new Failure('port_unavailable', `can't announce the hub over mDNS on ${names}`, { cause });
      }
    });
  }

  /** Stops without a goodbye, because another responder announces the hub on the same segment. */
  async closeSilently(): Promise<void> {
    this.#beginClosing();
    await this.#queue.run(() => this.#close());
  }

  /** Sends a goodbye and stops; resolves when it is sent and the sockets are closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#beginClosing();
    await this.#queue.run(async () => {
      await this.#sayGoodbye();
      await this.#close();
    });
  }

  /**
   * If the hub was announced before, a running probe ends before the goodbye: another device may have the hub's name by
   * then.
   */
  #beginClosing(): void {
    this.#ended = true;
    this.#stopAbort.abort();
    if (this.#publication.service === null) this.#initialProbeAbort.abort();
    this.#conflictThrottle.reset();
    this.#rescueThrottle.reset();
  }

  async #sayGoodbye(): Promise<void> {
    const isDisputed = this.#conflictThrottle.isBackingOff && this.#disputedName === this.instanceName;
    await this.#publication.goodbye(this.#sockets.link, isDisputed);
  }

  async #close(): Promise<void> {
    this.#stopListening();
    this.#publication.stop(this.#sockets.link);
    await this.#sockets[Symbol.asyncDispose]();
  }

  #enqueueInBackground(change: () => Promise<void>): void {
    this.#queue.run(change).catch(this.#options.onError);
  }

  async #update(announcement: Announcement): Promise<void> {
    if (this.#ended) return;
    const isSame = JSON.stringify(announcement) === JSON.stringify(this.#announcement);
    this.#announcement = announcement;
    this.#stopListening();
    const moved = await this.#sockets.update(announcement.segment);
    const { link, probed, unprobed } = this.#sockets;
    this.#stopListening = link.onRecords((records, how) => this.#handleRecords(records, how));
    const { service } = this.#publication;
    if (isSame && !moved && unprobed === null && service !== null) {
      if (this.#names.current.claim !== null) await this.#reclaimNames(link);
      return;
    }
    // First on probed interfaces: outdated responses of the hub there must not conflict with its own probe.
    if (service !== null && probed !== null) await this.#publication.announce(probed, this.#service());
    if (unprobed === null && service !== null) return;
    try {
      await this.#probeAndAnnounce(unprobed ?? link);
    } catch (error) {
      // Otherwise it would later send a goodbye for a name that another device has on this network.
      if (probed === null) this.#publication.discard();
      throw error;
    }
  }

  /** Finds names that are free on `probedLink`, and announces the hub under them on all links. */
  async #probeAndAnnounce(probedLink: MdnsLink): Promise<void> {
    const names = await this.#names.findFree(probedLink, {
      ...this.#probeOptions(this.#initialProbeAbort.signal),
      recordsOf: (instanceName, host) => uniqueRecords({ ...this.#service(), instanceName, host }),
      isClone: (claim) => this.#isClone(claim),
    });
    if (this.#initialProbeAbort.signal.aborted) return;
    this.#sockets.markProbed();
    this.#names.setCurrent(names);
    if (names.claim === null) this.#rivalPort = null;
    await this.#publication.announce(this.#sockets.link, this.#service());
  }

  /** Probes whether the claimed names are free again. The hub stays announced meanwhile. */
  async #reclaimNames(link: MdnsLink): Promise<void> {
    const contested = this.#names.contestedRecords(this.#service());
    const claim = await probe(link, contested, this.#probeOptions(this.#stopAbort.signal));
    if (this.#ended) return;
    if (claim !== null && (await this.#isClone(claim))) {
      await this.#sayGoodbye();
      this.#publication.discard();
      throw duplicateHubFailure(claim);
    }
    const before = this.host;
    this.#names.recordReprobe(claim);
    if (claim === null) this.#rivalPort = null;
    if (this.host !== before) await this.#publication.announce(link, this.#service());
  }

  #probeOptions(signal: AbortSignal): ProbeOptions {
    const { timers, random } = this.#options;
    return { timers, random, signal, isOwnRecord: (record) => this.#isOwnRecord(record) };
  }

  #isOwnRecord(record: ReceivedRecord): boolean {
    if (this.#publication.hasAnnounced(record)) return true;
    return record.type !== 'SRV' && this.#options.ownNetworks().hasAddress(String(record.data));
  }

  /** Connects only to addresses on the segment's own networks, whatever address is claimed. */
  async #isClone({ addresses }: NameClaim): Promise<boolean> {
    const { isClone, ownNetworks } = this.#options;
    const address = addresses.find((one) => ownNetworks().isOnLink(one, this.#interfaces));
    if (address === undefined) return false;
    return isClone(address, this.#rivalPort ?? this.#announcement?.httpsPort ?? 0, this.#stopAbort.signal);
  }

  get #interfaces(): readonly string[] {
    return this.#announcement?.segment.interfaces.map(({ name }) => name) ?? [];
  }

  #service(): ServiceDescription {
    const { httpsPort = 0, txt = {}, segment } = this.#announcement ?? {};
    const { instanceName, host } = this;
    return { instanceName, id: this.#options.id, host, httpsPort, txt, addresses: segment?.addresses ?? [] };
  }

  /**
   * Probes of other hosts need no handling here: they get a response like every query. Foreign goodbyes are countered.
   */
  #handleRecords(records: readonly ReceivedRecord[], how: RecordSource): void {
    const port = servicePort(records, this.#names.preferredHost);
    if (port !== this.#announcement?.httpsPort) this.#rivalPort = port ?? this.#rivalPort;
    const { service } = this.#publication;
    if (service === null || how === 'probe' || this.#ended) return;
    if (this.#publication.hasReducedTtl(records))
      this.#rescueThrottle.run(() => this.#enqueueInBackground(() => this.#defend()));
    const conflict = detectConflict(uniqueRecords(service), records, how, (record) => this.#isOwnRecord(record));
    if (conflict === null) return;
    this.#disputedName = service.instanceName;
    const names = this.#names.current;
    const settle = async () => {
      // It was queued, so the hub may have found other names, or confirmed these, in the meantime.
      if (this.#publication.service === null || this.#names.current !== names) return;
      const isKept = this.#names.current.contested.includes(conflict.name);
      await (conflict.lost && !isKept ? this.#reprobe() : this.#defend());
    };
    this.#conflictThrottle.run(() => this.#enqueueInBackground(settle));
  }

  async #defend(): Promise<void> {
    if (!this.#ended) await this.#publication.defend(this.#sockets.link);
  }

  /**
   * Probes again after a lost conflict. Silent meanwhile: its responses would make the other device rename itself too.
   */
  async #reprobe(): Promise<void> {
    if (this.#ended) return;
    const before = this.#names.current;
    const { link } = this.#sockets;
    this.#publication.stop(link);
    try {
      await this.#probeAndAnnounce(link);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#publication.discard();
      this.#options.onLost(error);
      return;
    }
    const { instance, host, claim } = this.#names.current;
    const isSame = instance === before.instance && host === before.host && (claim === null) === (before.claim === null);
    if (!isSame) this.#options.onRenamed();
  }
}
