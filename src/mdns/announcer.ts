import type { Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Random } from '../core/random.ts';
import { type Claim, conflictIn, type How, servicePort } from './claims.ts';
import { Doors } from './doors.ts';
import { claimed, copied, findFreeNames, type Names } from './free-names.ts';
import type { Link } from './link.ts';
import type { Neighbourhood, OwnNetworks } from './neighbourhoods.ts';
import { Pace } from './pace.ts';
import { type ProbeOptions, probe } from './probe.ts';
import { Publication } from './publication.ts';
import type { ReceivedRecord } from './record-data.ts';
import { addressRecords, foldCase, hostNames, ownRecords, type ServiceDescription, toInstanceName } from './records.ts';
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
  /** The hub's stable id, a DNS label: see {@link hostNames}. */
  readonly id: string;
  readonly timers: Timers;
  readonly random: Random;
  /** This machine's addresses, as they are now. */
  ownNetworks(): OwnNetworks;
  /**
   * Whether the HTTPS server at this address proves that it is a copy of this hub: that it has the hub's CA key. Anybody can claim
   * a name, so that nothing else is believed. Does not throw; may say false at once where it was asked a short time ago.
   */
  isCopy(address: string, port: number, signal: AbortSignal): Promise<boolean>;
  /** Hears of what goes wrong while the hub is announced: the system calls' errors. */
  onError(error: unknown): void;
  /** Hears that the hub bears other names since a neighbour was found to claim its own, or that nobody claims them any more. */
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
 * id is added: `raspberrypi (4f2a)`. It may differ from start to start; appliances know the hub by its id and its pin. So may
 * the host name: where another device claims `<id>.local` the hub is `<id>-2.local`, until that is free again. Only a device
 * that has the hub's key is a copy of it, beside which it falls silent.
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
  readonly #stopping = new AbortController();
  #ended = false;
  #announced: Announced | null = null;
  /** The instance names that it may bear; the one that it bears comes first. */
  #instances: readonly [borne: string, ...others: string[]];
  readonly #hosts: readonly [own: string, ...others: string[]];
  #names: Names;
  /** The port of another service that is said to be on the hub's own host; null where nobody has said so. */
  #otherPort: number | null = null;
  /** The name that somebody else has claimed last. */
  #disputed: string | null = null;
  #unlisten: () => void = () => undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    const { instanceName: name, id, timers, onError, ownNetworks } = options;
    this.#doors = new Doors({ onError, timers, admits: (source) => ownNetworks().admits(source, this.#interfaces) });
    this.#publication = new Publication(timers, onError);
    this.#rests = new Rests(timers);
    this.#rescues = new Pace(timers, RESCUE_PAUSE);
    const suffix = ` (${id.slice(0, SUFFIX_LENGTH)})`;
    const instance = toInstanceName(name);
    this.#instances = [instance, toInstanceName(name, suffix), toInstanceName(id)];
    this.#hosts = hostNames(id);
    this.#names = { instance, host: this.#hosts[0], claim: null, kept: [] };
  }

  /** The name that appliances see. */
  get instanceName(): string {
    return this.#names.instance;
  }

  /** The host name that appliances see, with `.local`. */
  get host(): string {
    return this.#names.host;
  }

  /** That another device claims the hub's names; null where none does. The hub is announced all the same. */
  get claimed(): Failure | null {
    return claimed(this.#hosts[0], this.#names);
  }

  /** Why one of the neighbourhood's links is left out, while the hub is announced on the others; null where none is. */
  get missing(): Failure | null {
    return this.#doors.problem;
  }

  /**
   * Announces the hub with this, or changes to this what is announced; what stays the same is not taken back in
   * between. It probes only where it is new, and where its host name was claimed. May be called again after a failure.
   * @throws Failure `port_unavailable` where mDNS can't be spoken in the neighbourhood; `hub_id_taken` where another hub
   *   has this one's id and key, as where a card was copied into two machines
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
      await this.#sayGoodbye();
      await this.#close();
    });
  }

  /** Who knows the hub is told goodbye only after a probe that is under way: another one may have its name there. */
  #end(): void {
    this.#ended = true;
    this.#stopping.abort();
    if (this.#publication.service === null) this.#ending.abort();
    this.#rests.end();
    this.#rescues.end();
  }

  async #sayGoodbye(): Promise<void> {
    const isDisputed = this.#rests.disturbed && this.#disputed === this.instanceName;
    await this.#publication.goodbye(this.#doors.link, isDisputed);
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
    if (same && !moved && unprobed === null && service !== null) {
      if (this.#names.claim !== null) await this.#regain(link);
      return;
    }
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

  /** Finds free names, asking on these links, and is announced by them on all. */
  async #probeAndAnnounce(asked: Link): Promise<void> {
    const names = await findFreeNames(
      asked,
      { instances: this.#instances, hosts: this.#hosts },
      {
        ...this.#probing(this.#ending.signal),
        recordsOf: (instance, host) => ownRecords({ ...this.#service(instance), host }),
        isCopy: (claim) => this.#isCopy(claim),
      },
    );
    if (this.#ending.signal.aborted) return;
    this.#doors.haveProbed();
    this.#bear(names);
    await this.#publication.announce(this.#doors.link, this.#service(names.instance));
  }

  /** Looks whether what was claimed is free by now. The hub stays announced meanwhile. */
  async #regain(link: Link): Promise<void> {
    const [own] = this.#hosts;
    const service = this.#service(this.instanceName);
    const contested = ownRecords(service).filter(
      ({ name }) => name !== own && this.#names.kept.includes(foldCase(name)),
    );
    const records = [...addressRecords(own, service.addresses), ...contested];
    const claim = await probe(link, records, this.#probing(this.#stopping.signal));
    if (this.#ended) return;
    if (claim !== null && (await this.#isCopy(claim))) {
      await this.#sayGoodbye();
      this.#publication.lose();
      throw copied(claim);
    }
    const { host: before } = this.#names;
    this.#bear({ ...this.#names, claim, ...(claim === null ? { host: own, kept: [] } : {}) });
    if (this.host !== before) await this.#publication.announce(link, this.#service(this.instanceName));
  }

  #bear(names: Names): void {
    this.#names = names;
    this.#instances = [names.instance, ...this.#instances.filter((other) => other !== names.instance)];
    if (names.claim === null) this.#otherPort = null;
  }

  #probing(signal: AbortSignal): ProbeOptions {
    const { timers, random } = this.#options;
    return { timers, random, signal, isOurs: (record) => this.#isOurs(record) };
  }

  #isOurs(record: ReceivedRecord): boolean {
    if (record.type === 'SRV') return this.#publication.hasSaid(record);
    return this.#options.ownNetworks().hasAddress(String(record.data));
  }

  /** It connects to nothing beyond the neighbourhood's own networks, whatever address is claimed. */
  async #isCopy({ addresses }: Claim): Promise<boolean> {
    const { isCopy, ownNetworks } = this.#options;
    const address = addresses.find((one) => ownNetworks().isOnLink(one, this.#interfaces));
    if (address === undefined) return false;
    return isCopy(address, this.#otherPort ?? this.#announced?.httpsPort ?? 0, this.#stopping.signal);
  }

  get #interfaces(): readonly string[] {
    return this.#announced?.neighbourhood.interfaces.map(({ name }) => name) ?? [];
  }

  #service(instanceName: string): ServiceDescription {
    const { httpsPort = 0, txt = {}, neighbourhood } = this.#announced ?? {};
    const { id } = this.#options;
    return { instanceName, id, host: this.host, httpsPort, txt, addresses: neighbourhood?.addresses ?? [] };
  }

  /** A probe needs no more than the answer that every query gets. Who takes back what the hub says is contradicted. */
  #hear(records: readonly ReceivedRecord[], how: How): void {
    const port = servicePort(records, this.#hosts[0]);
    if (port !== this.#announced?.httpsPort) this.#otherPort = port ?? this.#otherPort;
    const { service } = this.#publication;
    if (service === null || how === 'probe' || this.#ended) return;
    if (this.#publication.isShortened(records)) this.#rescues.do(() => this.#inTurnLater(() => this.#defend()));
    const conflict = conflictIn(ownRecords(service), records, how, (record) => this.#isOurs(record));
    if (conflict === null) return;
    this.#disputed = service.instanceName;
    this.#rests.afterwards(() => {
      // It may have gone with the names that the hub bore then.
      const { instanceName, host } = this.#publication.service ?? {};
      if (instanceName !== service.instanceName || host !== service.host) return;
      const isKept = this.#names.kept.includes(conflict.name);
      this.#inTurnLater(() => (conflict.lost && !isKept ? this.#yield() : this.#defend()));
    });
  }

  async #defend(): Promise<void> {
    if (!this.#ended) await this.#publication.defend(this.#doors.link);
  }

  /** Goes back to probing; silent meanwhile, since its answers would drive the other one away too. */
  async #yield(): Promise<void> {
    if (this.#ended) return;
    const before = this.#names;
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
    const { instance, host, claim } = this.#names;
    const isSame = instance === before.instance && host === before.host && (claim === null) === (before.claim === null);
    if (!isSame) this.#options.onRenamed();
  }
}
