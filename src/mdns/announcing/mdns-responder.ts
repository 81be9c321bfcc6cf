import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import { detectConflict, type NameClaim, servicePort } from '../conflicts/conflict-detection.ts';
import { type ProbeOptions, probe } from '../conflicts/probe.ts';
import type { OwnNetworks, Segment } from '../networks/segments.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import { type ServiceDescription, uniqueRecords } from '../records/records.ts';
import { InterfaceSockets } from '../sockets/interface-sockets.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';
import { Throttle } from '../sockets/rate-limits.ts';
import { cloneFailure, HubNames } from './hub-names.ts';
import { Publication } from './publication.ts';

/** What may change while the hub is announced. */
export interface Announcement {
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
  /** This machine's addresses, as they are now. */
  ownNetworks(): OwnNetworks;
  /**
   * Whether the HTTPS server at this address proves that it is a copy of this hub: that it has the hub's CA key. Anybody can claim
   * a name, so that nothing else is believed. Does not throw; may say false at once where it was asked a short time ago.
   */
  isClone(address: string, port: number, signal: AbortSignal): Promise<boolean>;
  /** Called with the system calls' errors while the hub is announced. */
  onError(error: unknown): void;
  /** Called when the hub has taken other names because a neighbour claims its own, or when that claim is gone. */
  onRenamed(): void;
  /** Called when the hub is no longer announced, because a copy of it was found. */
  onLost(failure: Failure): void;
}

/** RFC 6762 section 6: no record is multicast more often, in ms. */
const RESCUE_INTERVAL = 1000;
/** RFC 6762 section 8.1 allows 15 conflicts in ten seconds; this allows 4, however often a neighbour claims a name. In ms. */
const CONFLICT_BACKOFF = { first: 1000, longest: 60_000 };

/**
 * Announces the hub as a `_latchkey._tcp` service on one segment, until it is disposed of.
 *
 * Its names may differ from start to start (see {@link HubNames}); appliances know the hub by its id and its pin. Only a device
 * that has the hub's key is a copy of it, beside which it falls silent.
 *
 * Two neighbours may come to have one name also later, when their networks are joined. Then the one with the lesser data
 * probes again, and takes another name (RFC 6762 section 9). It never says goodbye for the name that it lost: that would
 * take the other one's record away.
 */
export class MdnsResponder implements AsyncDisposable {
  readonly #options: MdnsResponderOptions;
  readonly #sockets: InterfaceSockets;
  readonly #publication: Publication;
  readonly #names: HubNames;
  readonly #conflictThrottle: Throttle;
  readonly #rescueThrottle: Throttle;
  /** Ends the probing before the hub was announced for the first time. */
  readonly #initialProbeAbort = new AbortController();
  readonly #stopAbort = new AbortController();
  #ended = false;
  #announcement: Announcement | null = null;
  /** The port of another service that was announced on the hub's own host name; null if none was. */
  #rivalPort: number | null = null;
  /** The instance name for which there was a conflict last. */
  #disputedName: string | null = null;
  #stopListening: () => void = () => undefined;
  #queue: Promise<void> = Promise.resolve();

  constructor(options: MdnsResponderOptions) {
    this.#options = options;
    const { instanceName, id, timers, onError, ownNetworks } = options;
    const admits = (source: string) => ownNetworks().acceptsSource(source, this.#interfaces);
    this.#sockets = new InterfaceSockets({ onError, timers, acceptsSource: admits });
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

  /** That another device claims the hub's names; null if none does. The hub is announced all the same. */
  get nameConflict(): Failure | null {
    return this.#names.nameConflict;
  }

  /** Why one of the segment's sockets is left out, while the hub is announced on the others; null if none is. */
  get socketProblem(): Failure | null {
    return this.#sockets.problem;
  }

  /**
   * Announces the hub with this, or changes to this what is announced; what stays the same is not taken back in
   * between. It probes only where it is new, and where its host name was claimed. May be called again after a failure.
   * @throws Failure `port_unavailable` if mDNS can't be spoken on the segment; `hub_id_taken` if another hub
   *   has this one's id and key, as where a card was copied into two machines
   */
  announce(announced: Announcement): Promise<void> {
    return this.#enqueue(async () => {
      try {
        await this.#update(announced);
      } catch (cause) {
        if (cause instanceof Failure) throw cause;
        const names = announced.segment.interfaces.map(({ name }) => name).join(', ');
        throw new Failure('port_unavailable', `can't announce the hub over mDNS on ${names}`, { cause });
      }
    });
  }

  /** Ends without a goodbye: the hub is announced on the same segment by another one of these. */
  async closeSilently(): Promise<void> {
    this.#beginClosing();
    await this.#enqueue(() => this.#close());
  }

  /** Says goodbye; resolves when that is on the wire and the sockets are closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#beginClosing();
    await this.#enqueue(async () => {
      await this.#sayGoodbye();
      await this.#close();
    });
  }

  /** Neighbours that know the hub get the goodbye only after a probe that is under way: another device may have its name there. */
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

  /** One change after another: two sockets must not claim one name. */
  #enqueue(change: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(change);
    this.#queue = done.catch(() => {});
    return done;
  }

  #enqueueInBackground(change: () => Promise<void>): void {
    this.#enqueue(change).catch(this.#options.onError);
  }

  async #update(announced: Announcement): Promise<void> {
    if (this.#ended) return;
    const same = JSON.stringify(announced) === JSON.stringify(this.#announcement);
    this.#announcement = announced;
    this.#stopListening();
    const moved = await this.#sockets.update(announced.segment);
    const { link, probed, unprobed } = this.#sockets;
    this.#stopListening = link.onRecords((records, how) => this.#handleRecords(records, how));
    const { service } = this.#publication;
    if (same && !moved && unprobed === null && service !== null) {
      if (this.#names.current.claim !== null) await this.#reclaimNames(link);
      return;
    }
    // First where it is known already: its own answers there must not speak against what it probes for.
    if (service !== null && probed !== null) await this.#publication.announce(probed, this.#service());
    if (unprobed === null && service !== null) return;
    try {
      await this.#probeAndAnnounce(unprobed ?? link);
    } catch (error) {
      // Nor may it say goodbye for a name that another device has where it is now.
      if (probed === null) this.#publication.discard();
      throw error;
    }
  }

  /** Finds free names, asking on these links, and is announced by them on all. */
  async #probeAndAnnounce(asked: MdnsLink): Promise<void> {
    const names = await this.#names.findFree(asked, {
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

  /** Looks whether what was claimed is free by now. The hub stays announced meanwhile. */
  async #reclaimNames(link: MdnsLink): Promise<void> {
    const contested = this.#names.contestedRecords(this.#service());
    const claim = await probe(link, contested, this.#probeOptions(this.#stopAbort.signal));
    if (this.#ended) return;
    if (claim !== null && (await this.#isClone(claim))) {
      await this.#sayGoodbye();
      this.#publication.discard();
      throw cloneFailure(claim);
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

  /** It connects to nothing beyond the segment's own networks, whatever address is claimed. */
  async #isClone({ addresses }: NameClaim): Promise<boolean> {
    const { isClone: isCopy, ownNetworks } = this.#options;
    const address = addresses.find((one) => ownNetworks().isOnLink(one, this.#interfaces));
    if (address === undefined) return false;
    return isCopy(address, this.#rivalPort ?? this.#announcement?.httpsPort ?? 0, this.#stopAbort.signal);
  }

  get #interfaces(): readonly string[] {
    return this.#announcement?.segment.interfaces.map(({ name }) => name) ?? [];
  }

  #service(): ServiceDescription {
    const { httpsPort = 0, txt = {}, segment } = this.#announcement ?? {};
    const { instanceName, host } = this;
    return { instanceName, id: this.#options.id, host, httpsPort, txt, addresses: segment?.addresses ?? [] };
  }

  /** A probe needs no more than the response that every query gets. Records that take the hub's back are contradicted. */
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
      // Queued behind what is under way, it may come when the hub has found other names, or has found these anew.
      if (this.#publication.service === null || this.#names.current !== names) return;
      const isKept = this.#names.current.contested.includes(conflict.name);
      await (conflict.lost && !isKept ? this.#reprobe() : this.#defend());
    };
    this.#conflictThrottle.run(() => this.#enqueueInBackground(settle));
  }

  async #defend(): Promise<void> {
    if (!this.#ended) await this.#publication.defend(this.#sockets.link);
  }

  /** Goes back to probing; silent meanwhile, since its answers would drive the other device away too. */
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
