import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';

/** One interface, and one of the two protocols. */
export interface MulticastInterface {
  readonly interface: string;
  /** The interface's IPv4 address; null for IPv6. */
  readonly ipv4: string | null;
}

/** What a {@link MulticastSocket} needs. */
export interface MulticastSocketOptions {
  /** Whether a packet from this IPv4 address is from the link: the kernel hands over those of all links. */
  acceptsSource(source: string): boolean;
  /** Is called with what goes wrong after the socket was bound: the system calls' errors. */
  onError(error: unknown): void;
}

/** RFC 6762 section 3. */
const GROUPS = { udp4: '224.0.0.251', udp6: 'ff02::fb' };

/** More questions than any host asks in one packet; each may be answered by one of ours. */
const MAX_QUESTIONS = 64;

/** RFC 6762 section 17, in bytes: more than a packet may have, with the headers of IPv4 (20) and UDP (8). */
const MAX_PACKET_BYTES = 9000;
const HEADER_BYTES = 28;

/**
 * The UDP socket that multicast-dns is given for its own, with the methods and the event that it uses. It passes on only packets
 * that are from the link and no larger than mDNS allows. One that multicast-dns can't parse is dropped, and ends nothing.
 */
export class MulticastSocket extends EventEmitter {
  /** What bonjour-service is made with: it hands all of it to multicast-dns. */
  readonly options: object;
  /** Rejects with the socket's error if it can't be bound, or can't join the group. */
  readonly bound: Promise<void>;
  readonly #binding: PromiseWithResolvers<void>;
  readonly #socket: Socket;
  readonly #group: string;
  readonly #interface: string;

  constructor(end: MulticastInterface, { acceptsSource: admits, onError }: MulticastSocketOptions) {
    super();
    const type = end.ipv4 === null ? 'udp6' : 'udp4';
    this.#group = GROUPS[type];
    this.#interface = end.ipv4 ?? `::%${end.interface}`;
    this.options = {
      socket: this,
      type,
      ip: this.#group,
      // Bound to the group, not to 0.0.0.0: unicast to this port stays with the machine's own responder (avahi).
      bind: end.ipv4 === null ? `${this.#group}%${end.interface}` : this.#group,
      interface: this.#interface,
      // It would wake up every five seconds for a group that it has joined.
      multicast: false,
    };
    this.#binding = Promise.withResolvers();
    this.bound = this.#binding.promise;
    let report = (error: unknown) => this.#binding.reject(error);
    this.bound.then(
      () => {
        report = onError;
      },
      () => undefined,
    );
    this.#socket = createSocket({
      type,
      reuseAddr: true,
      // Every address is one already, and node's own look-up takes few interfaces' names for the zone of one.
      lookup: (address, family, found) => process.nextTick(found, null, address, family),
    });
    this.#socket.on('error', (error) => report(error));
    this.#socket.on('message', (message, from) => {
      if (isAcceptable(message) && (from.family !== 'IPv4' || admits(from.address))) this.#emitMessage(message, from);
    });
  }

  /** Hears the group and speaks to it, the hub's own listeners included, over one interface (RFC 6762, sections 3 and 11). */
  bind(port: number, address: string, bound: () => void): void {
    this.#socket.bind(port, address, () => {
      try {
        this.#socket.addMembership(this.#group, this.#interface);
        this.#socket.setMulticastInterface(this.#interface);
        this.#socket.setMulticastTTL(255);
        this.#socket.setMulticastLoopback(true);
      } catch (error) {
        this.#binding.reject(error);
        return;
      }
      this.#binding.resolve();
      bound();
    });
  }

  /** As that of `node:dgram`. */
  send(...packet: Parameters<Socket['send']>): void {
    this.#socket.send(...packet);
  }

  close(closed: () => void): void {
    this.#socket.close(closed);
  }

  #emitMessage(message: Buffer, from: RemoteInfo): void {
    try {
      this.emit('message', message, from);
    } catch {
      // Nobody can be told: whoever sent it may be anyone.
    }
  }
}

function isAcceptable(message: Buffer): boolean {
  const questions = message.length < 6 ? 0 : message.readUInt16BE(4);
  return message.length + HEADER_BYTES <= MAX_PACKET_BYTES && questions <= MAX_QUESTIONS;
}
