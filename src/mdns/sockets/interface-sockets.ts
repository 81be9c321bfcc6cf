import type { Failure } from '../../core/failure.ts';
import type { Segment } from '../networks/segments.ts';
import { type MdnsLink, type MdnsLinkOptions, openMdnsLink } from './mdns-link.ts';
import type { MulticastInterface } from './multicast-socket.ts';

interface OpenSocket {
  readonly key: string;
  /** The interface's name and epoch: changes whenever it was disconnected. */
  readonly interfaceKey: string;
  readonly link: MdnsLink;
}

/** The sockets of a segment: one for IPv4 and one for IPv6 on each interface. */
export class InterfaceSockets implements AsyncDisposable {
  readonly #options: MdnsLinkOptions;
  #open: readonly OpenSocket[] = [];
  #problem: Failure | null = null;
  #probed: ReadonlySet<string> = new Set();

  constructor(options: MdnsLinkOptions) {
    this.#options = options;
  }

  /** All sockets as one link. */
  get link(): MdnsLink {
    return combineLinks(this.#open.map(({ link }) => link));
  }

  /** The sockets of interfaces on which the hub's names were found to be free; null if there are none. */
  get probed(): MdnsLink | null {
    return this.#linkOf(({ interfaceKey }) => this.#probed.has(interfaceKey));
  }

  /** The sockets of interfaces on which the names were not probed yet; null if there are none. */
  get unprobed(): MdnsLink | null {
    return this.#linkOf(({ interfaceKey }) => !this.#probed.has(interfaceKey));
  }

  /** Why a socket could not be opened; null if all are open. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Records that the names were found to be free on all open sockets. */
  markProbed(): void {
    this.#probed = new Set(this.#open.map(({ interfaceKey }) => interfaceKey));
  }

  /**
   * Opens sockets on interfaces that are new in the segment or were disconnected, and closes those that are no longer
   * needed; the others stay open. A socket that can't be opened is skipped, unless no other is open.
   * @returns whether anything changed
   * @throws Failure of `openMdnsLink`, if no socket is open
   */
  async update(segment: Segment): Promise<boolean> {
    const wanted = socketsOf(segment);
    const before = this.#open;
    const keys = new Set(wanted.map(({ key }) => key));
    const kept = before.filter(({ key }) => keys.has(key));
    await combineLinks(before.filter((one) => !kept.includes(one)).map(({ link }) => link))[Symbol.asyncDispose]();
    this.#open = kept;

    const missing = wanted.filter(({ key }) => !kept.some((one) => one.key === key));
    const outcomes = await Promise.allSettled(
      missing.map(async ({ target, ...rest }) => ({ ...rest, link: await openMdnsLink(target, this.#options) })),
    );
    const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    this.#open = [...kept, ...opened];
    this.#problem = failed?.reason ?? null;
    if (failed !== undefined && this.#open.length === 0) throw failed.reason;
    return opened.length > 0 || kept.length < before.length;
  }

  #linkOf(matches: (socket: OpenSocket) => boolean): MdnsLink | null {
    const links = this.#open.filter(matches).map(({ link }) => link);
    return links.length === 0 ? null : combineLinks(links);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { link } = this;
    this.#open = [];
    await link[Symbol.asyncDispose]();
  }
}

function socketsOf(segment: Segment): readonly (Omit<OpenSocket, 'link'> & { readonly target: MulticastInterface })[] {
  return segment.interfaces.flatMap(({ name, ipv4, ipv6, epoch }) => {
    const interfaceKey = `${name} ${epoch}`;
    const own = [...(ipv4 === null ? [] : [ipv4]), ...(ipv6 ? [null] : [])];
    return own.map((address) => ({
      key: `${interfaceKey} ${address}`,
      interfaceKey,
      target: { interface: name, ipv4: address },
    }));
  });
}

/**
 * Combines several links into one. It sends on each link and succeeds if one of them does: another one's network may
 * not be up yet.
 */
function combineLinks(links: readonly MdnsLink[]): MdnsLink {
  return {
    serve(records) {
      for (const link of links) link.serve(records);
    },
    respond: (records) => sendOnAll(links, (link) => link.respond(records)),
    probe: (records) => sendOnAll(links, (link) => link.probe(records)),
    onRecords(listener) {
      const unsubscribes = links.map((link) => link.onRecords(listener));
      return () => {
        for (const unsubscribe of unsubscribes) unsubscribe();
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(links.map((link) => link[Symbol.asyncDispose]()));
    },
  };
}

async function sendOnAll(links: readonly MdnsLink[], send: (link: MdnsLink) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(links.map(send));
  const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
  if (failed.length === outcomes.length) throw failed[0]?.reason;
}
