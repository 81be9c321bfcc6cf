import type { Failure } from '../../core/failure.ts';
import type { Segment } from '../networks/segments.ts';
import { type MdnsLink, type MdnsLinkOptions, openMdnsLink } from './mdns-link.ts';
import type { MulticastInterface } from './multicast-socket.ts';

interface OpenSocket {
  readonly key: string;
  /** The interface as it is since it last lost its network. */
  readonly interfaceKey: string;
  readonly link: MdnsLink;
}

/** The sockets of a segment: one for IPv4 and one for IPv6 on each of its interfaces. */
export class InterfaceSockets implements AsyncDisposable {
  readonly #options: MdnsLinkOptions;
  #open: readonly OpenSocket[] = [];
  #problem: Failure | null = null;
  #probed: ReadonlySet<string> = new Set();

  constructor(options: MdnsLinkOptions) {
    this.#options = options;
  }

  /** All of them as one. */
  get link(): MdnsLink {
    return combineLinks(this.#open.map(({ link }) => link));
  }

  /** Those on which the hub's names were found to be free; null if there is none. */
  get probed(): MdnsLink | null {
    return this.#linkOf(({ interfaceKey: attachment }) => this.#probed.has(attachment));
  }

  /** Those on which the names were not probed for yet; null if there is none. */
  get unprobed(): MdnsLink | null {
    return this.#linkOf(({ interfaceKey: attachment }) => !this.#probed.has(attachment));
  }

  /** Why one of them could not be opened; null if all are open. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** The names were found to be free on all of them. */
  markProbed(): void {
    this.#probed = new Set(this.#open.map(({ interfaceKey: attachment }) => attachment));
  }

  /**
   * Opens sockets on interfaces that are new in the segment, or whose network was away, and closes those that are not wanted
   * any more; the others stay as they are. One that can't be opened is left out as long as there is another one.
   * @returns whether anything changed
   * @throws Failure as `openMdnsLink`, if none can be opened
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
      missing.map(async ({ end, ...rest }) => ({ ...rest, link: await openMdnsLink(end, this.#options) })),
    );
    const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    this.#open = [...kept, ...opened];
    this.#problem = failed?.reason ?? null;
    if (failed !== undefined && this.#open.length === 0) throw failed.reason;
    return opened.length > 0 || kept.length < before.length;
  }

  #linkOf(isMeant: (socket: OpenSocket) => boolean): MdnsLink | null {
    const links = this.#open.filter(isMeant).map(({ link }) => link);
    return links.length === 0 ? null : combineLinks(links);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { link } = this;
    this.#open = [];
    await link[Symbol.asyncDispose]();
  }
}

function socketsOf(segment: Segment): readonly (Omit<OpenSocket, 'link'> & { readonly end: MulticastInterface })[] {
  return segment.interfaces.flatMap(({ name, ipv4, ipv6, epoch }) => {
    const interfaceKey = `${name} ${epoch}`;
    const own = [...(ipv4 === null ? [] : [ipv4]), ...(ipv6 ? [null] : [])];
    return own.map((address) => ({
      key: `${interfaceKey} ${address}`,
      interfaceKey,
      end: { interface: name, ipv4: address },
    }));
  });
}

/**
 * Several links as one. What is sent goes out on each; if one of them fails (its network may be just coming), it is enough
 * that another one succeeds.
 */
function combineLinks(links: readonly MdnsLink[]): MdnsLink {
  return {
    serve(records) {
      for (const link of links) link.serve(records);
    },
    respond: (answers) => sendOnAll(links, (link) => link.respond(answers)),
    probe: (records) => sendOnAll(links, (link) => link.probe(records)),
    onRecords(listener) {
      const ends = links.map((link) => link.onRecords(listener));
      return () => {
        for (const end of ends) end();
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
