import type { Failure } from '../core/failure.ts';
import { joined } from './joined-links.ts';
import { type Door, type Link, type LinkOptions, openLink } from './link.ts';
import type { Neighbourhood } from './neighbourhoods.ts';

interface OpenDoor {
  readonly key: string;
  /** The interface as it is since it last lost its network. */
  readonly attachment: string;
  readonly link: Link;
}

/** The links of a neighbourhood: of each interface, over IPv4 and IPv6. */
export class Doors implements AsyncDisposable {
  readonly #options: LinkOptions;
  #open: readonly OpenDoor[] = [];
  #problem: Failure | null = null;
  #probed: ReadonlySet<string> = new Set();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** All of them as one. */
  get link(): Link {
    return joined(this.#open.map(({ link }) => link));
  }

  /** Those where the hub's names were found to be free; null where there is none. */
  get probed(): Link | null {
    return this.#linkOf(({ attachment }) => this.#probed.has(attachment));
  }

  /** Those that lead where nobody has been asked yet whether the names are free; null where none does. */
  get unprobed(): Link | null {
    return this.#linkOf(({ attachment }) => !this.#probed.has(attachment));
  }

  /** Why one of them could not be opened; null where all are open. */
  get problem(): Failure | null {
    return this.#problem;
  }

  /** Everybody behind them has been asked. */
  haveProbed(): void {
    this.#probed = new Set(this.#open.map(({ attachment }) => attachment));
  }

  /**
   * Opens what the neighbourhood has more than before, and what was moved or unplugged since, and closes the rest; what
   * stays as it is hears nothing of it. A door that can't be opened is left out as long as there is another one.
   * @returns whether there was anything to do
   * @throws Failure as `openLink`, where none can be opened
   */
  async follow(neighbourhood: Neighbourhood): Promise<boolean> {
    const wanted = doorsOf(neighbourhood);
    const before = this.#open;
    const keys = new Set(wanted.map(({ key }) => key));
    const kept = before.filter(({ key }) => keys.has(key));
    await joined(before.filter((one) => !kept.includes(one)).map(({ link }) => link))[Symbol.asyncDispose]();
    this.#open = kept;

    const missing = wanted.filter(({ key }) => !kept.some((one) => one.key === key));
    const outcomes = await Promise.allSettled(
      missing.map(async ({ door, ...rest }) => ({ ...rest, link: await openLink(door, this.#options) })),
    );
    const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    this.#open = [...kept, ...opened];
    this.#problem = failed?.reason ?? null;
    if (failed !== undefined && this.#open.length === 0) throw failed.reason;
    return opened.length > 0 || kept.length < before.length;
  }

  #linkOf(isMeant: (door: OpenDoor) => boolean): Link | null {
    const links = this.#open.filter(isMeant).map(({ link }) => link);
    return links.length === 0 ? null : joined(links);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { link } = this;
    this.#open = [];
    await link[Symbol.asyncDispose]();
  }
}

function doorsOf(neighbourhood: Neighbourhood): readonly (Omit<OpenDoor, 'link'> & { readonly door: Door })[] {
  return neighbourhood.interfaces.flatMap(({ name, ipv4, ipv6, mark }) => {
    const attachment = `${name} ${mark}`;
    const own = [...(ipv4 === null ? [] : [ipv4]), ...(ipv6 ? [null] : [])];
    return own.map((address) => ({
      key: `${attachment} ${address}`,
      attachment,
      door: { interface: name, ipv4: address },
    }));
  });
}
