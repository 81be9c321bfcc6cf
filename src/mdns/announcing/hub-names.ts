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

/** The names that the hub is announced by on one segment. */
export interface AnnouncedNames {
  readonly instance: string;
  readonly host: string;
  /** Another device claims the hub's own host name, or each instance name, and has not proved to be a copy; else null. */
  readonly claim: NameClaim | null;
  /** Which of these names, in lower case, the hub keeps though they are claimed, because all others are claimed too. */
  readonly contested: readonly string[];
}

/** What finding free names takes. */
export interface FreeNamesOptions extends ProbeOptions {
  /** The records that only the hub may have if it has these names: see `uniqueRecords`. */
  recordsOf(instance: string, host: string): readonly ResourceRecord[];
  /** Whether a claimant of one of the host names proves that it has the hub's key. */
  isClone(claim: NameClaim): Promise<boolean>;
}

/** How many characters of the id distinguish hubs of one name. */
const SUFFIX_LENGTH = 4;

/**
 * The names that the hub has on one segment, and those that it may have.
 *
 * The instance name is the hub's name. If a neighbour has it (two hubs may be called `raspberrypi`), a part of the id is
 * added: `raspberrypi (4f2a)`. The host name is `<id>.local`; if another device claims it, `<id>-2.local`, until it is free again.
 */
export class HubNames {
  /** The one that it has comes first. */
  #instanceCandidates: readonly [current: string, ...others: string[]];
  readonly #hostCandidates: readonly [own: string, ...others: string[]];
  #names: AnnouncedNames;

  /** @param name the hub's name, as configured. @param id a DNS label: see {@link hostNames} */
  constructor(name: string, id: string) {
    const instance = toInstanceName(name);
    this.#instanceCandidates = [instance, toInstanceName(name, ` (${id.slice(0, SUFFIX_LENGTH)})`), toInstanceName(id)];
    this.#hostCandidates = hostNames(id);
    this.#names = { instance, host: this.#hostCandidates[0], claim: null, contested: [] };
  }

  get current(): AnnouncedNames {
    return this.#names;
  }

  /** The host name that is the hub's unless another device claims it. */
  get preferredHost(): string {
    return this.#hostCandidates[0];
  }

  /** That another device claims the hub's own host name, or each of its instance names, and has not shown the key; else null. */
  get nameConflict(): Failure | null {
    const { claim, host, instance } = this.#names;
    if (claim === null) return null;
    const where = claim.addresses.length === 0 ? '' : ` (${formatAddresses(claim.addresses)})`;
    const name =
      claim.name === foldCase(this.preferredHost)
        ? `the hub's name ${this.preferredHost}`
        : "each of the hub's service names";
    return new Failure(
      'hub_name_claimed',
      `another device on this network${where} claims ${name}, and has not shown the hub's key; the hub is announced as "${instance}" at ${host}. Appliances are safe, because they check the hub's pin: find the device, and give it another name or take it off the network`,
    );
  }

  /**
   * Finds names that are free on a link. A name that another host claims is passed over, and the next one tried. No honest
   * device claims each one, and it would be wrong to fall silent then: the hub keeps the best one all the same.
   * @throws Failure `hub_id_taken` if a claimant is a copy of this hub
   * @throws Error as the socket gives it
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
      if (isHost && (await options.isClone(taken))) throw cloneFailure(taken);
      const names = isHost ? hosts : instances;
      names.shift();
      const isLast = names.length === 0;
      if (isHost || isLast) claim ??= taken;
      if (isHost) host = hosts[0] ?? this.#hostCandidates[0];
      else instance = instances[0] ?? this.#instanceCandidates[0];
      if (isLast) kept.push(isHost ? foldCase(host) : foldCase(serviceInstanceName(instance)));
    }
  }

  /** From now on the hub has these. */
  setCurrent(names: AnnouncedNames): void {
    this.#names = names;
    this.#instanceCandidates = [
      names.instance,
      ...this.#instanceCandidates.filter((other) => other !== names.instance),
    ];
  }

  /** What to probe for in order to find out whether the names that were claimed are free by now. */
  contestedRecords(service: ServiceDescription): readonly ResourceRecord[] {
    const { contested: kept } = this.#names;
    const others = uniqueRecords(service).filter(
      ({ name }) => name !== this.preferredHost && kept.includes(foldCase(name)),
    );
    return [...addressRecords(this.preferredHost, service.addresses), ...others];
  }

  /** The contested names were probed for. @param claim null if they are free: the hub has its own host name again */
  recordReprobe(claim: NameClaim | null): void {
    this.#names = { ...this.#names, claim, ...(claim === null ? { host: this.preferredHost, contested: [] } : {}) };
  }
}

/** The hub that has this claim on a host name is a copy of this one. */
export function cloneFailure({ addresses }: NameClaim): Failure {
  return new Failure(
    'hub_id_taken',
    `another hub on this network (${formatAddresses(addresses)}) has this hub's id and key: was its card copied? Two hubs must not live on the same grants: stop this one, or pair its appliances anew after setting it up afresh`,
  );
}

/** Anybody may claim any number of addresses. */
const MAX_LISTED_ADDRESSES = 3;

function formatAddresses(addresses: readonly string[]): string {
  return addresses.slice(0, MAX_LISTED_ADDRESSES).join(', ');
}
