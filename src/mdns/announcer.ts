import type { Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Random } from '../core/random.ts';
import { conflictIn, type How } from './claims.ts';
import { Doors } from './doors.ts';
import type { Link } from './link.ts';
import type { Neighbourhood, OwnNetworks } from './neighbourhoods.ts';
import { Pace } from './pace.ts';
import { probe } from './probe.ts';
import { Publication } from './publication.ts';
import type { ReceivedRecord } from './record-data.ts';
import { foldCase, hostName, ownRecords, type ServiceDescription, toInstanceName } from './records.ts';
import { Rests } from './rests.ts';

/** What may change while the hub is announced. */
export interface Announced {
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`: `v`, `http`, `capk`. */
  readonly txt: Readonly<Record<string, string>>;
  readonly neighbourhood: Neighbourhood;
}

export interface AnnouncerOptions {
  /** The hub's name, as configured. */
  readonly instanceName: string;
  /** The hub's stable id, a DNS label: its host name is `<id>.local`. */
  readonly id: string;
  readonly timers: Timers;
  readonly random: Random;
  /** This machine's addresses, as they are now. */
  ownNetworks(): OwnNetworks;
  /** Hears of what goes wrong while the hub is announced: the system calls' errors. */
  onError(error: unknown): void;
  /** Hears that the hub bears another name since a neighbour was found to have its own. */
  onRenamed(): void;
  /** Hears that the hub is no more announced: none of its names is free. */
  onLost(failure: Failure): void;
}

/** So many characters of the id tell hubs of one name apart. */
const SUFFIX_LENGTH = 4;

/** RFC 6762 section 6: no record is multicast more often, in ms. */
const RESCUE_PAUSE = 1000;

/**
 * Announces the hub as a `_latchkey._tcp` service in one neighbourhood, until it is disposed of.
 *
 * The instance name is the hub's name. Where a neighbour has that (two hubs may be called `raspberrypi`), a part of the
 * id is added: `raspberrypi (4f2a)`. It may differ from start to start; appliances know the hub by its id and its pin.
 *
 * Two neighbours may come to have one name also later, when their networks are joined. Then the one with the lesser data
 * probes again, and bears another name (RFC 6762 section 9). It never says goodbye for the name that it lost: that would
 * take the other one's record away.
 */
export class Announcer implements AsyncDisposable {
  readonly #options: AnnouncerOptions;
  readonly #doors: Doors;
  readonly #publication: Publication;
  readonly #rests: Rests;
  readonly #rescues: Pace;
  readonly #ending = new AbortController();
  #ended = false;
  #announced: Announced | null = null;
  /** The one that it bears comes first. */
  #names: readonly string[];
  /** The name that somebody else has claimed last. */
  #disputed: string | null = null;
  #unlisten: () => void = () => undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    const { instanceName: name, id, timers, onError, ownNetworks } = options;
    const interfaces = () => this.#announced?.neighbourhood.interfaces.map((one) => one.name) ?? [];
    this.#doors = new Doors({ onError, timers, admits: (source) => ownNetworks().admits(source, interfaces()) });
    this.#publication = new Publication(timers, onError);
    this.#rests = new Rests(timers);
    this.#rescues = new Pace(timers, RESCUE_PAUSE);
    const suffix = ` (${id.slice(0, SUFFIX_LENGTH)})`;
    this.#names = [toInstanceName(name), toInstanceName(name, suffix), toInstanceName(id)];
  }

  /** The name that appliances see. */
  get instanceName(): string {
    return this.#names[0] ?? '';
  }

  /** Why one of the neighbourhood's links is left out, while the hub is announced on the others; null where none is. */
  get missing(): Failure | null {
    return this.#doors.problem;
  }

  /**
   * Announces the hub with this, or changes to this what is announced; what stays the same is not taken back in
   * between. It probes only where it is new. May be called again after a failure.
   * @throws Failure `port_unavailable` where mDNS can't be spoken in the neighbourhood; `hub_id_taken` where another hub
   *   answers to this one's id, as where a card was copied into two machines
   */
  announce(announced: Announced): Promise<void> {
    return this.#inTurn(async () => {
      try {
        await this.#follow(announced);
      } catch (cause) {
        if (cause instanceof Failure) throw cause;
        const names = announced.neighbourhood.interfaces.map(({ name }) => name).join(', ');
        throw new Failure('port_unavailable', `can't announce the hub over mDNS on ${names}`, { cause });
      }
    });
  }

  /** Ends without a goodbye: the hub is announced in the same neighbourhood by another one of these. */
  async abandon(): Promise<void> {
    this.#end();
    await this.#inTurn(() => this.#close());
  }

  /** Says goodbye; resolves when that is on the wire and the sockets are closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end();
    await this.#inTurn(async () => {
      const isDisputed = this.#rests.disturbed && this.#disputed === this.instanceName;
      await this.#publication.goodbye(this.#doors.link, isDisputed);
      await this.#close();
    });
  }

  /** Who knows the hub is told goodbye only after a probe that is under way: another one may have its name there. */
  #end(): void {
    this.#ended = true;
    if (this.#publication.service === null) this.#ending.abort();
    this.#rests.end();
    this.#rescues.end();
  }

  async #close(): Promise<void> {
    this.#unlisten();
    this.#publication.stop(this.#doors.link);
    await this.#doors[Symbol.asyncDispose]();
  }

  /** One change after another: two sockets must not claim one name. */
  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(change);
    this.#turn = done.catch(() => {});
    return done;
  }

  #inTurnLater(change: () => Promise<void>): void {
    this.#inTurn(change).catch(this.#options.onError);
  }

  async #follow(announced: Announced): Promise<void> {
    if (this.#ended) return;
    const same = JSON.stringify(announced) === JSON.stringify(this.#announced);
    this.#announced = announced;
    this.#unlisten();
    const moved = await this.#doors.follow(announced.neighbourhood);
    const { link, probed, unprobed } = this.#doors;
    this.#unlisten = link.onClaim((records, how) => this.#hear(records, how));
    const { service } = this.#publication;
    if (same && !moved && unprobed === null && service !== null) return;
    // First where it is known already: its own answers there must not speak against what it probes for.
    if (service !== null && probed !== null) {
      await this.#publication.announce(probed, this.#service(this.instanceName));
    }
    if (unprobed === null && service !== null) return;
    try {
      await this.#probeAndAnnounce(unprobed ?? link);
    } catch (error) {
      // Nor may it say goodbye for a name that is another one's where it is now.
      if (probed === null) this.#publication.lose();
      throw error;
    }
  }

  /** Finds a free name, asking on these links, and is announced by that on all. */
  async #probeAndAnnounce(asked: Link): Promise<void> {
    const name = await this.#firstFree(asked);
    if (this.#ending.signal.aborted) return;
    this.#doors.haveProbed();
    this.#names = [name, ...this.#names.filter((other) => other !== name)];
    await this.#publication.announce(this.#doors.link, this.#service(name));
  }

  /** @throws Failure where the hub's host name, or each instance name, is somebody else's */
  async #firstFree(link: Link): Promise<string> {
    const { id, timers, random, ownNetworks } = this.#options;
    const isOwnAddress = (address: string) => ownNetworks().hasAddress(address);
    const options = { timers, random, signal: this.#ending.signal, isOwnAddress };
    for (const name of this.#names) {
      const taken = await probe(link, ownRecords(this.#service(name)), options);
      if (taken === null) return name;
      if (taken !== foldCase(hostName(id))) continue;
      throw new Failure(
        'hub_id_taken',
        "another hub on this network has this hub's id: was its card copied? Two hubs must not live on the same grants: stop this one, or pair its appliances anew after setting it up afresh",
      );
    }
    throw new Failure(
      'unexpected',
      `neighbours on this network claim each of the hub's names: ${this.#names.join(', ')}`,
    );
  }

  #service(instanceName: string): ServiceDescription {
    const { httpsPort = 0, txt = {}, neighbourhood } = this.#announced ?? {};
    return { instanceName, id: this.#options.id, httpsPort, txt, addresses: neighbourhood?.addresses ?? [] };
  }

  /** A probe needs no more than the answer that every query gets. Who takes back what the hub says is contradicted. */
  #hear(records: readonly ReceivedRecord[], how: How): void {
    const { service } = this.#publication;
    if (service === null || how === 'probe' || this.#ended) return;
    if (this.#publication.isShortened(records)) this.#rescues.do(() => this.#inTurnLater(() => this.#defend()));
    const isOwnAddress = (address: string) => this.#options.ownNetworks().hasAddress(address);
    const conflict = conflictIn(ownRecords(service), records, how, isOwnAddress);
    if (conflict === null) return;
    this.#disputed = service.instanceName;
    this.#rests.afterwards(() => {
      // It may have gone with the name that the hub bore then.
      if (this.#publication.service?.instanceName !== service.instanceName) return;
      this.#inTurnLater(() => (conflict.lost ? this.#yield() : this.#defend()));
    });
  }

  async #defend(): Promise<void> {
    if (!this.#ended) await this.#publication.defend(this.#doors.link);
  }

  /** Goes back to probing; silent meanwhile, since its answers would drive the other one away too. */
  async #yield(): Promise<void> {
    if (this.#ended) return;
    const before = this.instanceName;
    const { link } = this.#doors;
    this.#publication.stop(link);
    try {
      await this.#probeAndAnnounce(link);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#publication.lose();
      this.#options.onLost(error);
      return;
    }
    if (this.instanceName !== before) this.#options.onRenamed();
  }
}
