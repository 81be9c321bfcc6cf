import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Share, sharesOf } from '../system/devices.ts';

/** How many connections a server has at a time. */
export interface PlaceCounts {
  readonly all: number;
  /** Of one device: none can shut the others out. */
  readonly ofOne: number;
}

const COUNTS: PlaceCounts = { all: 1000, ofOne: 250 };

/** How long a connection without a request stays where more than half of the places are taken, in ms. */
const SHORT_KEEP_ALIVE = 5000;

/** A connection. */
interface Guest {
  readonly socket: Socket;
  /** Both ends: TLS puts another socket in front of the one that came. */
  readonly ends: string;
  /** The widest first. */
  readonly shares: readonly Share[];
  /** Requests that are worked on. */
  underWay: number;
}

/**
 * The places that a server has for connections. One device gets a part of them; where all are taken, whoever holds most gives
 * its longest idle one to a newcomer. Where none is idle, it gives its oldest one, but only to one who holds less.
 */
export class Places {
  readonly #server: Server;
  readonly #counts: PlaceCounts;
  readonly #keepAlive: number;
  readonly #guests = new Set<Guest>();
  /** By both ends; of two that have the same, one is gone and has not been told of yet. */
  readonly #byEnds = new Map<string, Guest>();
  /** Those without a request under way, the longest idle first. */
  readonly #idle = new Set<Guest>();
  readonly #taken = new Map<string, number>();
  /** Called when nobody is left; null while newcomers are expected. */
  #emptied: (() => void) | null = null;

  constructor(server: Server, counts: PlaceCounts = COUNTS) {
    this.#server = server;
    this.#counts = counts;
    this.#keepAlive = server.keepAliveTimeout;
    server.on('connection', (socket: Socket) => this.#come(socket));
    server.prependListener('request', ({ socket }, response) => {
      if (this.#emptied !== null) response.setHeader('connection', 'close');
      const guest = this.#byEnds.get(endsOf(socket));
      if (guest === undefined) return;
      guest.underWay += 1;
      this.#idle.delete(guest);
      response.once('close', () => {
        guest.underWay -= 1;
        if (guest.underWay === 0 && this.#guests.has(guest)) this.#idle.add(guest);
        if (this.#emptied !== null) server.closeIdleConnections();
      });
    });
  }

  /** The open connections. The server's own list has none that is still in the TLS handshake. */
  get sockets(): readonly Socket[] {
    return [...this.#guests].map(({ socket }) => socket);
  }

  /** Closes every connection as soon as it is idle. Resolves when none is left. */
  async empty(): Promise<void> {
    if (this.#guests.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#emptied = resolve;
    this.#server.closeIdleConnections();
    await promise;
  }

  #come(socket: Socket): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      // It was reset before it came here.
      socket.destroy();
      return;
    }
    const shares = sharesOf(remoteAddress);
    const isTooMuch = shares.some(({ of, times }) => this.#count(of) >= times * this.#counts.ofOne);
    if (isTooMuch || !this.#hasRoom(shares)) {
      socket.destroy();
      return;
    }
    const guest = { socket, ends: endsOf(socket), shares, underWay: 0 };
    this.#guests.add(guest);
    this.#byEnds.set(guest.ends, guest);
    this.#idle.add(guest);
    for (const { of } of shares) this.#taken.set(of, this.#count(of) + 1);
    this.#adapt();
    socket.once('close', () => this.#leave(guest));
  }

  #leave(guest: Guest): void {
    if (!this.#guests.delete(guest)) return;
    if (this.#byEnds.get(guest.ends) === guest) this.#byEnds.delete(guest.ends);
    this.#idle.delete(guest);
    for (const { of } of guest.shares) {
      const left = this.#count(of) - 1;
      if (left === 0) this.#taken.delete(of);
      else this.#taken.set(of, left);
    }
    this.#adapt();
    if (this.#guests.size === 0) this.#emptied?.();
  }

  /** Whether there is a place, if need be one that another had. */
  #hasRoom(shares: readonly Share[]): boolean {
    if (this.#guests.size < this.#counts.all) return true;
    const found =
      this.#greediest(this.#idle) ??
      this.#greediest([...this.#guests].filter((guest) => this.#holdsMore(guest.shares, shares)));
    if (found === null) return false;
    this.#leave(found);
    found.socket.destroy();
    return true;
  }

  /** The first one of whoever holds most, and more than one. */
  #greediest(guests: Iterable<Guest>): Guest | null {
    let found: Guest | null = null;
    let most: readonly number[] = [1];
    for (const guest of guests) {
      const counts = guest.shares.map(({ of }) => this.#count(of));
      if (!isMore(counts, most)) continue;
      found = guest;
      most = counts;
    }
    return found;
  }

  /** Whether the first would still hold as much as the second if it gave it one. */
  #holdsMore(shares: readonly Share[], others: readonly Share[]): boolean {
    for (const [index, { of }] of shares.entries()) {
      const other = others[index]?.of;
      if (of !== other) return this.#count(of) > this.#count(other ?? '') + 1;
    }
    return false;
  }

  #count(of: string): number {
    return this.#taken.get(of) ?? 0;
  }

  #adapt(): void {
    const isCrowded = this.#guests.size > this.#counts.all / 2;
    this.#server.keepAliveTimeout = isCrowded ? Math.min(SHORT_KEEP_ALIVE, this.#keepAlive) : this.#keepAlive;
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** Compares the widest shares first. */
function isMore(counts: readonly number[], others: readonly number[]): boolean {
  for (const [index, count] of counts.entries()) {
    const other = others[index] ?? 0;
    if (count !== other) return count > other;
  }
  return false;
}
