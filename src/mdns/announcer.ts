import type { Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Random } from '../core/random.ts';
import type { LanAddress } from './lan-address.ts';
import { type Link, openLink } from './link.ts';
import { probe } from './probe.ts';
import { publish } from './publication.ts';
import { hostName, ownRecords, type ServiceDescription, toInstanceName } from './records.ts';

/** What may change while the hub is announced. */
interface Announced {
  readonly httpsPort: number;
  /** The TXT record's keys beside `txtvers` and `id`: `v`, `http`, `capk`. */
  readonly txt: Readonly<Record<string, string>>;
  /** Where the hub is reached; the link that it is on hears of the hub. */
  readonly address: LanAddress;
}

export interface AnnounceOptions extends Announced {
  /** The hub's name, as configured. */
  readonly instanceName: string;
  /** The hub's stable id, a DNS label: its host name is `<id>.local`. */
  readonly id: string;
  readonly timers: Timers;
  readonly random: Random;
  /** Hears of what goes wrong while the hub is announced: the system calls' errors. */
  onError(error: unknown): void;
}

export interface Announcement extends AsyncDisposable {
  /** The name that appliances see: the hub's own, or one with a part of its id where a neighbour has that name. */
  readonly instanceName: string;
  /**
   * Takes the announcement back and makes a new one; for a second the hub can't be found.
   * @throws Failure as {@link announce}; nothing is announced then, and it may be called again
   */
  update(changes: Partial<Announced>): Promise<void>;
  /** Says goodbye; resolves when that is on the wire and the socket is closed. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** So many characters of the id tell hubs of one name apart. */
const SUFFIX_LENGTH = 4;

/**
 * Announces the hub as a `_latchkey._tcp` service on the link of its LAN address, until it is disposed of. It wants an
 * address of this machine that is not loopback: where there is none yet, or in a demo on 127.0.0.1, the caller leaves
 * it alone.
 *
 * The instance name is the hub's name. Where a neighbour has that (two hubs may be called `raspberrypi`), a part of the
 * id is added: `raspberrypi (4f2a)`. It may differ from start to start; appliances know the hub by its id and its pin.
 * @throws Failure `port_unavailable` where mDNS can't be spoken at the address; `unexpected` where another hub answers
 *   to this one's id: a card that was copied into two machines
 */
export async function announce(options: AnnounceOptions): Promise<Announcement> {
  const ending = new AbortController();
  let announced: Announced = options;
  let current: Standing | null = await stand(options, announced, ending.signal);
  let turn: Promise<void> = Promise.resolve();

  /** One change after another: two sockets must not claim one name. */
  function inTurn(change: () => Promise<void>): Promise<void> {
    const done = turn.then(change);
    turn = done.catch(() => {});
    return done;
  }

  async function takeBack() {
    const old = current;
    current = null;
    await old?.[Symbol.asyncDispose]();
  }

  return {
    get instanceName() {
      return current?.instanceName ?? toInstanceName(options.instanceName);
    },
    update(changes) {
      return inTurn(async () => {
        if (ending.signal.aborted) return;
        announced = { ...announced, ...changes };
        await takeBack();
        current = await stand(options, announced, ending.signal);
      });
    },
    [Symbol.asyncDispose]() {
      ending.abort();
      return inTurn(takeBack);
    },
  };
}

interface Standing extends AsyncDisposable {
  readonly instanceName: string;
}

/** Opens the link, finds a free name on it and publishes the hub; null where `signal` ended that. */
async function stand(
  { instanceName, id, timers, random, onError }: AnnounceOptions,
  { httpsPort, txt, address: lan }: Announced,
  signal: AbortSignal,
): Promise<Standing | null> {
  await using resources = new AsyncDisposableStack();
  const link = resources.use(await openLink(lan, onError));
  const rest = { id, httpsPort, txt, address: lan.address, family: lan.family };
  const services = candidateNames(instanceName, id).map((name) => ({ instanceName: name, ...rest }));
  try {
    const service = await firstFree(link, services, { timers, random, signal });
    if (signal.aborted) return null;
    resources.use(await publish(link, service, { timers, onError }));
    const kept = resources.move();
    return { instanceName: service.instanceName, [Symbol.asyncDispose]: () => kept.disposeAsync() };
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('port_unavailable', `can't announce the hub over mDNS at ${lan.address}`, { cause });
  }
}

function candidateNames(name: string, id: string): readonly string[] {
  return [toInstanceName(name), toInstanceName(name, ` (${id.slice(0, SUFFIX_LENGTH)})`), toInstanceName(id)];
}

/** @throws Failure where the hub's host name, or each instance name, is somebody else's */
async function firstFree(
  link: Link,
  services: readonly ServiceDescription[],
  options: { timers: Timers; random: Random; signal: AbortSignal },
): Promise<ServiceDescription> {
  for (const service of services) {
    const taken = await probe(link, ownRecords(service), options);
    if (taken === null) return service;
    if (taken === hostName(service.id).toLowerCase()) break;
  }
  throw new Failure(
    'hub_id_taken',
    "another hub on this network has this hub's id: was its card copied? Two hubs must not live on the same grants: stop this one, or pair its appliances anew after setting it up afresh",
  );
}
