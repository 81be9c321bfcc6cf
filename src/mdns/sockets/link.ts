import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { EventEmitter } from 'node:events';
import Bonjour from 'bonjour-service';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { ClaimSource, ReceivedRecord } from '../records/record-data.ts';
import type { ResourceRecord } from '../records/records.ts';
import { type LegacyResponse, LegacyUnicast, type Query } from './legacy-unicast.ts';
import { type MdnsResponse, ResponseRateLimiter } from './rate-limits.ts';

/** The multicast DNS of one link, or of several that belong together. */
export interface Link extends AsyncDisposable {
  /** Answers queries with these records, and with no others, from now on. */
  serve(records: readonly ResourceRecord[]): void;
  /**
   * Multicasts a response; resolves when the operating system has taken it.
   * @throws Error as the socket gives it: the network may be away
   */
  respond(answers: readonly ResourceRecord[]): Promise<void>;
  /**
   * Multicasts a probe (RFC 6762 section 8.1): a query for everything under the records' names, with the records that
   * are going to be announced in its authority section.
   * @throws Error as the socket gives it
   */
  probe(records: readonly ResourceRecord[]): Promise<void>;
  /**
   * Listens to who claims names on the link, the hub itself included: by a response, or by a probe (what its authority
   * section has). The function it returns ends that.
   */
  onClaim(listener: (records: readonly ReceivedRecord[], how: ClaimSource) => void): () => void;
}

/** Where a link begins: one interface, and one of the two protocols. */
export interface Door {
  readonly interface: string;
  /** The interface's IPv4 address; null for IPv6. */
  readonly ipv4: string | null;
}

export interface LinkOptions {
  /** Hears of what goes wrong later: the system calls' errors. */
  onError(error: unknown): void;
  /** Whether a packet from this address is from the link: over IPv4 the kernel hands over those of all links. */
  admits(source: string): boolean;
  readonly timers: Timers;
}

interface ReceivedPacket {
  readonly answers: readonly ReceivedRecord[];
  readonly additionals: readonly ReceivedRecord[];
  readonly authorities: readonly ReceivedRecord[];
}

type Sent = (error?: Error | null) => void;

/** What multicast-dns, inside bonjour-service, offers. */
interface MulticastSocket extends EventEmitter {
  respond: (packet: MdnsResponse, sent: Sent) => void;
  send(
    packet: LegacyResponse & { readonly type: 'response'; readonly flags: number },
    to: RemoteInfo,
    sent: Sent,
  ): void;
  query(packet: { questions: readonly object[]; authorities: readonly ResourceRecord[] }, sent: Sent): void;
  destroy(closed: () => void): void;
}

/** RFC 6762 section 3. */
const GROUPS = { udp4: '224.0.0.251', udp6: 'ff02::fb' };

/** RFC 1035 section 4.1.1: AA. */
const AUTHORITATIVE_ANSWER = 0x400;

/** More questions than any host asks in one packet; each may be answered by one of ours. */
const MOST_QUESTIONS = 64;

/** RFC 6762 section 17, in bytes: more than a packet may have, with the headers of IPv4 (20) and UDP (8). */
const MAX_PACKET = 9000;
const HEADERS = 28;

/**
 * Opens the link behind a door. bonjour-service gives the wire format and the answers to queries. Its own publishing is not
 * used: it announces every interface's address, never a new one, and the loser of a probe says goodbye in the winner's name.
 * @throws Failure `port_unavailable` where the port can't be had, or the address is none of this machine's
 */
export async function openLink(door: Door, { onError, admits, timers }: LinkOptions): Promise<Link> {
  const type = door.ipv4 === null ? 'udp6' : 'udp4';
  const group = GROUPS[type];
  function report(error: unknown) {
    // What has no system call's name is a packet that could not be read: a neighbour's fault, and none of ours.
    if (error instanceof Error && 'syscall' in error) onError(error);
  }

  const own = createSocket({
    type,
    reuseAddr: true,
    // Every address is one already, and node's own look-up takes few interfaces' names for the zone of one.
    lookup: (address, family, found) => process.nextTick(found, null, address, family),
  });
  const options = {
    socket: own,
    type,
    ip: group,
    // Bound to the group, not to 0.0.0.0: unicast to this port stays with the machine's own responder (avahi).
    bind: door.ipv4 === null ? `${group}%${door.interface}` : group,
    interface: door.ipv4 ?? `::%${door.interface}`,
    // It would wake up every five seconds for a group that it has joined.
    multicast: false,
  };
  const server = new Bonjour(options, report)['server'];
  const socket: MulticastSocket = server.mdns;
  guard(own, admits);
  try {
    await bound(socket);
    join(own, options);
  } catch (cause) {
    socket.on('error', () => {}); // it may come twice, and without a listener it would end the process
    await closing(socket);
    const where = door.ipv4 === null ? `over IPv6 on ${door.interface}` : `at ${door.ipv4}`;
    throw new Failure('port_unavailable', `can't speak mDNS (UDP port 5353) ${where}`, { cause });
  }
  socket.on('error', report);
  socket.on('warning', report);

  let served: readonly ResourceRecord[] = [];
  const respond = socket.respond;
  const limiter = new ResponseRateLimiter(timers, (packet) => respond(packet, (error) => error && report(error)));
  const legacy = new LegacyUnicast(timers);
  socket.prependListener('query', (query: Query, from: RemoteInfo) => legacy.heard(query, from));
  socket.respond = (packet) => {
    const unicast = legacy.responseWith(packet);
    if (unicast === null) limiter.send(packet);
    else if (unicast.to !== null) {
      const response = { ...unicast.response, type: 'response', flags: AUTHORITATIVE_ANSWER } as const;
      // Who has gone meanwhile is no error of the link.
      socket.send(response, unicast.to, () => undefined);
    }
  };
  return {
    serve(records) {
      server.unregister([...served]);
      server.register([...records]);
      served = records;
      limiter.clear();
    },
    respond: (said) => sending((sent) => respond({ answers: said }, sent)),
    probe(authorities) {
      const names = new Set(authorities.map(({ name }) => name));
      const questions = [...names].map((name) => ({ name, type: 'ANY' }));
      return sending((sent) => socket.query({ questions, authorities }, sent));
    },
    onClaim(listener) {
      const onResponse = ({ answers, additionals }: ReceivedPacket) =>
        listener([...answers, ...additionals], 'response');
      const onQuery = ({ authorities }: ReceivedPacket) => listener(authorities, 'probe');
      socket.on('response', onResponse).on('query', onQuery);
      return () => socket.off('response', onResponse).off('query', onQuery);
    },
    [Symbol.asyncDispose]: () => {
      limiter.clear();
      legacy[Symbol.dispose]();
      return closing(socket);
    },
  };
}

/**
 * Parses only packets that are from the link and no larger than mDNS allows. One that the library can't parse is dropped, and
 * ends nothing. To be called when the library has added its listener to the socket.
 * @param admits whether a packet from this IPv4 address is from the link
 */
export function guard(socket: Socket, admits: (source: string) => boolean): void {
  const readers = socket.listeners('message');
  socket.removeAllListeners('message');
  socket.on('message', (message: Buffer, from: RemoteInfo) => {
    if (message.length + HEADERS > MAX_PACKET) return;
    const questions = message.length < 6 ? 0 : message.readUInt16BE(4);
    if (questions > MOST_QUESTIONS || (from.family === 'IPv4' && !admits(from.address))) return;
    try {
      for (const read of readers) read.call(socket, message, from);
    } catch {
      // Nobody can be told: whoever sent it may be anyone.
    }
  });
}

async function bound(socket: MulticastSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on('ready', resolve).on('error', reject);
  try {
    await promise;
  } finally {
    socket.off('ready', resolve).off('error', reject);
  }
}

/** Hears the group and speaks to it, the hub's own listeners included, over one interface (RFC 6762, sections 3 and 11). */
function join(socket: Socket, at: { readonly ip: string; readonly interface: string }): void {
  socket.addMembership(at.ip, at.interface);
  socket.setMulticastInterface(at.interface);
  socket.setMulticastTTL(255);
  socket.setMulticastLoopback(true);
}

function sending(send: (sent: Sent) => void): Promise<void> {
  return new Promise((resolve, reject) => send((error) => (error ? reject(error) : resolve())));
}

function closing(socket: MulticastSocket): Promise<void> {
  return new Promise((resolve) => socket.destroy(resolve));
}
