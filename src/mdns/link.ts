import type { EventEmitter } from 'node:events';
import Bonjour from 'bonjour-service';
import { Failure } from '../core/failure.ts';
import type { LanAddress } from './lan-address.ts';
import type { ResourceRecord } from './records.ts';

/** A record of a packet that came in; what its data is depends on its type. */
export interface ReceivedRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl?: number;
  readonly data?: unknown;
}

/** The multicast DNS of one link, reached through one of the hub's addresses. */
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
  onClaim(listener: (records: readonly ReceivedRecord[], how: 'response' | 'probe') => void): () => void;
}

interface ReceivedPacket {
  readonly answers: readonly ReceivedRecord[];
  readonly additionals: readonly ReceivedRecord[];
  readonly authorities: readonly ReceivedRecord[];
}

type Sent = (error?: Error | null) => void;

/** What multicast-dns, inside bonjour-service, offers. */
interface MulticastSocket extends EventEmitter {
  respond(packet: { answers: readonly ResourceRecord[] }, sent: Sent): void;
  query(packet: { questions: readonly object[]; authorities: readonly ResourceRecord[] }, sent: Sent): void;
  destroy(closed: () => void): void;
}

/** RFC 6762 section 3. */
const GROUPS = { IPv4: '224.0.0.251', IPv6: 'ff02::fb' };

/**
 * Opens the link that an address of the hub is on. bonjour-service gives the socket, the wire format and the answers
 * to queries. Its own publishing is not used: it announces every interface's address, never a new one, and the loser
 * of a probe says goodbye in the winner's name.
 * @param onError hears of what goes wrong later; each error code once
 * @throws Failure `port_unavailable` where the port can't be had, or the address is none of this machine's
 */
export async function openLink(address: LanAddress, onError: (error: Error) => void): Promise<Link> {
  const group = GROUPS[address.family];
  const isIPv4 = address.family === 'IPv4';
  const reported = new Set<string>();
  function report(error: unknown) {
    // What has no system call's name is a packet that could not be read: a neighbour's fault, and none of ours.
    if (!isSystemError(error) || reported.has(error.code)) return;
    reported.add(error.code);
    onError(error);
  }

  const options = {
    port: 5353,
    type: isIPv4 ? 'udp4' : 'udp6',
    ip: group,
    // Bound to the group, not to 0.0.0.0: unicast to this port stays with the machine's own responder (avahi).
    bind: isIPv4 ? group : `${group}%${address.interface}`,
    interface: isIPv4 ? address.address : `::%${address.interface}`,
  };
  const server = new Bonjour(options, report)['server'];
  const socket: MulticastSocket = server.mdns;
  await ready(socket, address);
  socket.on('error', report);
  socket.on('warning', report);

  let served: readonly ResourceRecord[] = [];
  return {
    serve(records) {
      server.unregister([...served]);
      server.register([...records]);
      served = records;
    },
    respond: (answers) => sending((sent) => socket.respond({ answers }, sent)),
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
    [Symbol.asyncDispose]: () => closing(socket),
  };
}

/** Waits until the socket is bound and has joined the group. */
async function ready(socket: MulticastSocket, { address }: LanAddress): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let joined = false;
  let problem: unknown;
  const onJoined = () => {
    joined = true;
  };
  const onProblem = (error: unknown) => {
    problem = error;
  };
  const onReady = () => (joined ? resolve() : reject(problem));
  socket.on('networkInterface', onJoined).on('warning', onProblem).on('ready', onReady).on('error', reject);
  try {
    await promise;
  } catch (cause) {
    socket.on('error', () => {}); // it may come twice, and without a listener it would end the process
    await closing(socket);
    throw new Failure('port_unavailable', `can't speak mDNS (UDP port 5353) at ${address}`, { cause });
  } finally {
    socket.off('networkInterface', onJoined).off('warning', onProblem).off('ready', onReady).off('error', reject);
  }
}

function sending(send: (sent: Sent) => void): Promise<void> {
  return new Promise((resolve, reject) => send((error) => (error ? reject(error) : resolve())));
}

function closing(socket: MulticastSocket): Promise<void> {
  return new Promise((resolve) => socket.destroy(resolve));
}

function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string';
}
