import { Failure } from '../core/failure.ts';
import type { Claim } from './claims.ts';
import type { Link } from './link.ts';
import { type ProbeOptions, probe } from './probe.ts';
import { foldCase, type ResourceRecord, serviceName } from './records.ts';

/** The names that the hub is announced by in one neighbourhood. */
export interface Names {
  readonly instance: string;
  readonly host: string;
  /** Somebody claims the hub's own host name, or each instance name, and has not proved to be a copy; null where nobody does. */
  readonly claim: Claim | null;
  /** Which of these names, in lower case, the hub bears though they are claimed, as all others are, and does not give up. */
  readonly kept: readonly string[];
}

/** The names that the hub may have, the best ones first. */
export interface Candidates {
  readonly instances: readonly [best: string, ...others: string[]];
  readonly hosts: readonly [own: string, ...others: string[]];
}

export interface FreeNamesOptions extends ProbeOptions {
  /** What is the hub's alone where it has these names: see `ownRecords`. */
  recordsOf(instance: string, host: string): readonly ResourceRecord[];
  /** Whether a claimant of one of the host names proves that it has the hub's key. */
  isCopy(claim: Claim): Promise<boolean>;
}

/**
 * Finds names that are free on a link. A name that somebody else claims is passed over, and the next one tried. Where each one
 * is claimed no honest device does that, and it would be wrong to fall silent: the hub takes the best one all the same.
 * @throws Failure `hub_id_taken` where a claimant is a copy of this hub
 * @throws Error as the socket gives it
 */
export async function findFreeNames(link: Link, candidates: Candidates, options: FreeNamesOptions): Promise<Names> {
  const hosts = [...candidates.hosts];
  const instances = [...candidates.instances];
  let [host, instance] = [candidates.hosts[0], candidates.instances[0]];
  let claim: Claim | null = null;
  const kept: string[] = [];
  for (;;) {
    const records = options.recordsOf(instance, host).filter(({ name }) => !kept.includes(foldCase(name)));
    const taken = records.length === 0 ? null : await probe(link, records, options);
    if (taken === null) return { instance, host, claim, kept };
    const isHost = taken.name === foldCase(host);
    if (isHost && (await options.isCopy(taken))) throw copied(taken);
    const names = isHost ? hosts : instances;
    names.shift();
    const isLast = names.length === 0;
    if (isHost || isLast) claim ??= taken;
    if (isHost) host = hosts[0] ?? candidates.hosts[0];
    else instance = instances[0] ?? candidates.instances[0];
    if (isLast) kept.push(isHost ? foldCase(host) : foldCase(serviceName(instance)));
  }
}

/** The hub that has this claim on a host name is a copy of this one. */
export function copied({ addresses }: Claim): Failure {
  return new Failure(
    'hub_id_taken',
    `another hub on this network (${listed(addresses)}) has this hub's id and key: was its card copied? Two hubs must not live on the same grants: stop this one, or pair its appliances anew after setting it up afresh`,
  );
}

/** Another device claims the hub's own host name, or each of its instance names, and has not shown its key. */
export function claimed(own: string, { claim, host, instance }: Names): Failure | null {
  if (claim === null) return null;
  const where = claim.addresses.length === 0 ? '' : ` (${listed(claim.addresses)})`;
  const name = claim.name === foldCase(own) ? `the hub's name ${own}` : "each of the hub's service names";
  return new Failure(
    'hub_name_claimed',
    `another device on this network${where} claims ${name}, and has not shown the hub's key; the hub is announced as "${instance}" at ${host}. Appliances are safe, because they check the hub's pin: find the device, and give it another name or take it off the network`,
  );
}

/** Anybody may claim any number of them. */
const MAX_LISTED = 3;

function listed(addresses: readonly string[]): string {
  return addresses.slice(0, MAX_LISTED).join(', ');
}
