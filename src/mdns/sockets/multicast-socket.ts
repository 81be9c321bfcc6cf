import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';

/** One interface and one IP version. */
export interface MulticastInterface {
  readonly interface: string;
  /** The interface's IPv4 address; null for IPv6. */
  readonly ipv4: string | null;
}

/** Options of a {@link MulticastSocket}. */
export interface MulticastSocketOptions {
  /** Whether a packet from this IPv4 address is from the link: the kernel delivers packets of all links. */
  acceptsSource(source: string): boolean;
  /** Called with errors that occur after the socket was bound. */
  onError(error: unknown): void;
}

/** The multicast groups (RFC 6762 section 3). */
const GROUPS = { udp4: '224.0.0.251', udp6: 'ff02::fb' };

/** The most questions in a packet, more than any host sends: each may cause a response. */
const MAX_QUESTIONS = 64;

/** RFC 6762 section 17: the largest packet in bytes, including its headers. */
const MAX_PACKET_BYTES = 9000;
/** IPv4 (20) and UDP (8). */
const HEADER_BYTES = 28;

/**
 * The UDP socket for multicast-dns, with the methods and the event that it uses. It passes on only packets that are
 * from the link and no larger than mDNS allows. A packet that multicast-dns can't parse is dropped.
 */
export class MulticastSocket extends EventEmitter {
  /** The options for bonjour-service, which passes all of them to multicast-dns. */
  readonly options: object;
  /** Rejects with the socket's error if it can't be bound, or can't join the group. */
  readonly bound: Promise<void>;
  readonly #binding: PromiseWithResolvers<void>;
  readonly #socket: Socket;
  readonly #group: string;
  readonly #interface: string;

  constructor(target: MulticastInterface, { acceptsSource, onError }: MulticastSocketOptions) {
    super();
    const type = target.ipv4 === null ? 'udp6' : 'udp4';
    this.#group = GROUPS[type];
    this.#interface = target.ipv4 ?? `::%${target.interface}`;
    this.options = {
      socket: this,
      type,
      ip: this.#group,
      // Bound to the group, not to 0.0.0.0: unicast to this port stays with the machine's own responder (avahi).
      bind: target.ipv4 === null ? `${this.#group}%${target.interface}` : this.#group,
      interface: this.#interface,
      // Otherwise multicast-dns would wake up every five seconds to join the group again.
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
      // All hosts are IP addresses already, and Node's own lookup accepts few interface names as the zone of an
      // address.
      lookup: (address, family, found) => process.nextTick(found, null, address, family),
    });
    this.#socket.on('error', (error) => report(error));
    this.#socket.on('message', (message, from) => {
      if (isAcceptable(message) && (from.family !== 'IPv4' || acceptsSource(from.address)))
        this.#emitMessage(message, from);
    });
  }

  /**
   * Joins the group on one interface. Sent packets also reach listeners on this machine (RFC 6762, sections 3 and 11).
   */
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

  /** Like `send` of `node:dgram`. */
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
      // Not reported: any device may send malformed packets.
    }
  }
}

function isAcceptable(message: Buffer): boolean {
  const questions = message.length < 6 ? 0 : message.readUInt16BE(4);
  return message.length + HEADER_BYTES <= MAX_PACKET_BYTES && questions <= MAX_QUESTIONS;
}
