import { Failure } from '../../core/failure.ts';
import type { NameClaim } from '../conflicts/conflict-detection.ts';
import { type ProbeOptions, probe } from '../conflicts/probe.ts';
import {
  addressRecords,
  foldCase,
  hostNames,
  type ResourceRecord,
  type ServiceDescription,
  serviceInstanceName,
  toInstanceName,
  uniqueRecords,
} from '../records/records.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';

/** The names under which the hub is announced on one segment. */
interface AnnouncedNames {
  readonly instance: string;
  readonly host: string;
  /**
   * A device's claim to the hub's own host name, or to all instance names, without proof that it is a clone; else null.
   */
  readonly claim: NameClaim | null;
  /**
   * Which of the two names the hub uses although another device claims them, because all its other names of that kind
   * are claimed too. In lower case; an instance name with the service type.
   */
  readonly contested: readonly string[];
}

interface FreeNamesOptions extends ProbeOptions {
  /** The unique records of the hub under these names: see `uniqueRecords`. */
  recordsOf(instance: string, host: string): readonly ResourceRecord[];
  /** Whether a claimant of one of the host names proves that it has the hub's key. */
  isClone(claim: NameClaim): Promise<boolean>;
}

/** The number of characters of the id that distinguish hubs with the same name. */
const SUFFIX_LENGTH = 4;

/**
 * The hub's current names on one segment, and the alternatives.
 *
 * The instance name is the hub's name. If another device has it (two hubs may be called `raspberrypi`), a part of the
 * id is added: `raspberrypi (4f2a)`. The host name is `<id>.local`. If another device claims it, the hub uses
 * `<id>-2.local` until its own name is free again.
 */
export class HubNames {
  /** The current name comes first. */
  #instanceCandidates: readonly [current: string, ...others: string[]];
  readonly #hostCandidates: readonly [own: string, ...others: string[]];
  #names: AnnouncedNames;

  /** @param name the hub's name, as configured. @param id a DNS label: see {@link hostNames} */
  constructor(name: string, id: string) {
    const instance = toInstanceName(name);
    this.#instanceCandidates = [instance, toInstanceName(name, ` (${distinctivePart(id)})`), toInstanceName(id)];
    this.#hostCandidates = hostNames(id);
    this.#names = { instance, host: this.#hostCandidates[0], claim: null, contested: [] };
  }

  get current(): AnnouncedNames {
    return this.#names;
  }

  /** The hub's own host name, which it uses unless another device claims it. */
  get preferredHost(): string {
    return this.#hostCandidates[0];
  }

  /**
   * The failure if another device claims the hub's own host name or all its instance names without the hub's key; else
   * null.
   */
  get nameConflict(): Failure | null {
    const { claim, host, instance } = this.#names;
    if (claim === null) return null;
    const claimant = claim.addresses.length === 0 ? '' : ` (${formatAddresses(claim.addresses)})`;
    const name =
      claim.name === foldCase(this.preferredHost)
        ? `the hub's name ${this.preferredHost}`
        : 'all service names of the hub';
    return new Failure(
      'hub_name_claimed',
      `another device on this network${claimant} claims ${name} without having the hub's key; the hub is announced as "${instance}" at ${host}. Appliances are safe, because they check the hub's pin: find the device, and rename it or disconnect it from the network`,
    );
  }

  /**
   * Finds names that are free on a link. If another host claims a name, the next one is tried. If all are claimed, the
   * hub uses the first one nevertheless: only a hostile device claims all of them, and it must not silence the hub.
   * @throws Failure `hub_id_taken` if a claimant is a clone of this hub
   * @throws Error of the socket
   */
  async findFree(link: MdnsLink, options: FreeNamesOptions): Promise<AnnouncedNames> {
    const hosts = [...this.#hostCandidates];
    const instances = [...this.#instanceCandidates];
    let [host, instance] = [this.#hostCandidates[0], this.#instanceCandidates[0]];
    let claim: NameClaim | null = null;
    const kept: string[] = [];
    for (;;) {
      const records = options.recordsOf(instance, host).filter(({ name }) => !kept.includes(foldCase(name)));
      const taken = records.length === 0 ? null : await probe(link, records, options);
      if (taken === null) return { instance, host, claim, contested: kept };
      const isHost = taken.name === foldCase(host);
      if (isHost && (await options.isClone(taken))) throw duplicateHubFailure(taken);
      const names = isHost ? hosts : instances;
      names.shift();
      const isLast = names.length === 0;
      if (isHost || isLast) claim ??= taken;
      if (isHost) host = hosts[0] ?? this.#hostCandidates[0];
      else instance = instances[0] ?? this.#instanceCandidates[0];
      if (isLast) kept.push(isHost ? foldCase(host) : foldCase(serviceInstanceName(instance)));
    }
  }

  /** Sets the names that the hub uses from now on. */
  setCurrent(names: AnnouncedNames): void {
    this.#names = names;
    this.#instanceCandidates = [
      names.instance,
      ...this.#instanceCandidates.filter((other) => other !== names.instance),
    ];
  }

  /** The records to probe for, to find out whether the claimed names are free again. */
  contestedRecords(service: ServiceDescription): readonly ResourceRecord[] {
    const { contested } = this.#names;
    const others = uniqueRecords(service).filter(
      ({ name }) => name !== this.preferredHost && contested.includes(foldCase(name)),
    );
    return [...addressRecords(this.preferredHost, service.addresses), ...others];
  }

  /**
   * Records the result of a probe for the contested names. @param claim null if they are free: the hub takes its own
   * host name
   */
  recordReprobe(claim: NameClaim | null): void {
    this.#names = { ...this.#names, claim, ...(claim === null ? { host: this.preferredHost, contested: [] } : {}) };
  }
}

/** Of `latchkey-5f0c9a1e` only what follows the hyphen differs from the ids of other hubs. */
function distinctivePart(id: string): string {
  return id.slice(id.lastIndexOf('-') + 1).slice(0, SUFFIX_LENGTH);
}

/** The failure for a claimant that proved to be a clone of this hub. */
export function duplicateHubFailure({ addresses }: NameClaim): Failure {
  return new Failure(
    'hub_id_taken',
    `another hub on this network (${formatAddresses(addresses)}) has this hub's id and key, probably because the SD card was copied. Two hubs must not use the same grants: stop this hub, or set it up from scratch and pair its appliances again`,
  );
}

/** A device may claim any number of addresses. */
const MAX_LISTED_ADDRESSES = 3;

function formatAddresses(addresses: readonly string[]): string {
  return addresses.slice(0, MAX_LISTED_ADDRESSES).join(', ');
}
