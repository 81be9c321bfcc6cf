import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Share, sharesOf } from '../system/devices.ts';
import { boundRequestsUnderWay, type RequestWatcher } from '../system/requests-under-way.ts';
import { beneath } from './beneath.ts';

/** How many connections a server has at a time. */
export interface PlaceCounts {
  readonly all: number;
  /** Of one device: none can shut the others out. */
  readonly ofOne: number;
}

const COUNTS: PlaceCounts = { all: 1000, ofOne: 250 };

/** Requests that are worked on, or whose answers nobody reads, at a time: a thousand neighbours must not fill the memory. */
const MOST_UNDER_WAY = { ofOne: 32, all: 250 };

/** How long a connection without a request stays where more than half of the places are taken, in ms. */
const SHORT_KEEP_ALIVE = 5000;

/** A connection. */
interface Guest {
  readonly socket: Socket;
  /** The widest first. */
  readonly shares: readonly Share[];
  /** Its place among those who have come to be idle; null while a request of it is worked on. */
  idle: number | null;
}

/**
 * The places that a server has for connections. One device gets a part of them; where all are taken, whoever holds most gives
 * its longest idle one to a newcomer. Where none is idle, it gives its oldest one, but only to one who holds less.
 */
export class Places implements RequestWatcher {
  readonly #server: Server;
  readonly #counts: PlaceCounts;
  readonly #keepAlive: number;
  /** By the socket that came: requests come from another one, with TLS. */
  readonly #guests = new Map<Socket, Guest>();
  readonly #taken = new Map<string, number>();
  /** How often one has come to be idle. */
  #rests = 0;
  /** Called when nobody is left; null while newcomers are expected. */
  #emptied: (() => void) | null = null;

  constructor(server: Server, counts: PlaceCounts = COUNTS) {
    this.#server = server;
    this.#counts = counts;
    this.#keepAlive = server.keepAliveTimeout;
    server.on('connection', (socket: Socket) => this.#come(socket));
    boundRequestsUnderWay(server, MOST_UNDER_WAY, this);
  }

  /** The open connections. The server's own list has none that is still in the TLS handshake. */
  get sockets(): readonly Socket[] {
    return [...this.#guests.keys()];
  }

  began(socket: Socket, response: ServerResponse): void {
    if (this.#emptied !== null) response.setHeader('connection', 'close');
    const guest = this.#guests.get(beneath(socket));
    if (guest !== undefined) guest.idle = null;
  }

  ended(socket: Socket, left: number): void {
    const guest = this.#guests.get(beneath(socket));
    if (left === 0 && guest !== undefined) guest.idle = this.#nextRest();
    if (this.#emptied !== null) this.#server.closeIdleConnections();
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
    const guest = { socket, shares, idle: this.#nextRest() };
    this.#guests.set(socket, guest);
    for (const { of } of shares) this.#taken.set(of, this.#count(of) + 1);
    this.#adapt();
    socket.once('close', () => this.#leave(guest));
  }

  #leave(guest: Guest): void {
    if (!this.#guests.delete(guest.socket)) return;
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
      this.#greediest(this.#longestIdle()) ??
      this.#greediest([...this.#guests.values()].filter((guest) => this.#holdsMore(guest.shares, shares)));
    if (found === null) return false;
    this.#leave(found);
    found.socket.destroy();
    return true;
  }

  #longestIdle(): Guest[] {
    const idle = [...this.#guests.values()].flatMap((guest) =>
      guest.idle === null ? [] : { guest, since: guest.idle },
    );
    return idle.toSorted((one, other) => one.since - other.since).map(({ guest }) => guest);
  }

  #nextRest(): number {
    this.#rests += 1;
    return this.#rests;
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

/** Compares the widest shares first. */
function isMore(counts: readonly number[], others: readonly number[]): boolean {
  for (const [index, count] of counts.entries()) {
    const other = others[index] ?? 0;
    if (count !== other) return count > other;
  }
  return false;
}
