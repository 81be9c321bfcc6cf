import type { SeededRandom } from '../../support/seeded-random.ts';

const SECTOR_BYTES = 512;
const NO_BYTES = Buffer.alloc(SECTOR_BYTES);

/** What a process does to files, in order. */
export type DiskEvent =
  | { readonly kind: 'create' | 'unlink'; readonly path: string }
  | { readonly kind: 'link' | 'rename'; readonly path: string; readonly to: string }
  | { readonly kind: 'write'; readonly path: string; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  /** `began`: the index of the event before which everything was written that it syncs. */
  | {
      readonly kind: 'sync';
      readonly call: string;
      readonly path: string;
      readonly began: number;
      readonly hasFailed: boolean;
    }
  | { readonly kind: 'message'; readonly text: string };

/** A value that is on the disk as it was after this event, or after a later one. */
interface Version<Value> {
  readonly event: number;
  readonly value: Value;
  /** Whether a truncation has made it: a sync of the file's size makes it permanent. */
  readonly isCut?: boolean;
}

/** In which order a file is written: by sector, or in groups of so many sectors that are written at random. */
type WriteOrder = number | 'ascending' | 'descending';
const WRITE_ORDERS: readonly WriteOrder[] = [1, 8, Number.MAX_SAFE_INTEGER, 'ascending', 'descending'];

/** Drops the versions before the latest one that some sync has made permanent. */
function settle<Value>(versions: Version<Value>[], until: number, isPermanent: (version: Version<Value>) => boolean) {
  const permanent = versions.findLastIndex((version) => version.event < until && isPermanent(version));
  if (permanent > 0) versions.splice(0, permanent);
}

class SimulatedFile {
  readonly #sizes: Version<number>[] = [{ event: -1, value: 0 }];
  readonly #sectors = new Map<number, { readonly versions: Version<Buffer>[]; isDirty: boolean }>();

  get #size(): number {
    return this.#sizes.at(-1)?.value ?? 0;
  }

  write(event: number, at: number, bytes: Buffer): void {
    this.#sizes.push({ event, value: Math.max(this.#size, at + bytes.length) });
    for (let done = 0; done < bytes.length; ) {
      const number = Math.floor((at + done) / SECTOR_BYTES);
      const from = (at + done) % SECTOR_BYTES;
      const sector = this.#sectors.get(number) ?? { versions: [{ event: -1, value: NO_BYTES }], isDirty: true };
      const value = Buffer.from(sector.versions.at(-1)?.value ?? NO_BYTES);
      done += bytes.copy(value, from, done);
      sector.versions.push({ event, value });
      sector.isDirty = true;
      this.#sectors.set(number, sector);
    }
  }

  truncate(event: number, size: number): void {
    this.#sizes.push({ event, value: size, isCut: true });
    for (const [number, { versions }] of this.#sectors) {
      const kept = size - number * SECTOR_BYTES;
      if (kept >= SECTOR_BYTES) continue;
      const value = Buffer.from(versions.at(-1)?.value ?? NO_BYTES).fill(0, Math.max(0, kept));
      versions.push({ event, value, isCut: true });
    }
  }

  /** A failed sync leaves dirty sectors as they are on the disk, and later ones skip them (PostgreSQL's "fsyncgate"). */
  sync(until: number, hasFailed: boolean): void {
    if (!hasFailed) settle(this.#sizes, until, () => true);
    for (const sector of this.#sectors.values()) {
      const { versions, isDirty } = sector;
      if (!hasFailed) settle(versions, until, ({ isCut }) => isDirty || isCut === true);
      sector.isDirty &&= (versions.at(-1)?.event ?? 0) >= until;
    }
  }

  /** What the process would read. */
  current(): Buffer {
    return this.#bytes(this.#size, (versions) => versions.at(-1));
  }

  /**
   * What may be on the disk after a power cut. A truncation is there or not, as a whole, and later writes may be there
   * without it.
   */
  afterPowerCut(random: SeededRandom, order: WriteOrder): Buffer {
    const cuts = this.#sizes
      .slice(1)
      .filter(({ isCut }) => isCut === true)
      .map(({ event }) => event);
    const lost = random.whole(0, cuts.length);
    const [lastCut = -1, firstLost = Number.POSITIVE_INFINITY] = [cuts[lost - 1], cuts[lost]];
    const possible = <Value>(versions: readonly Version<Value>[]) => {
      const kept = versions.filter(({ event, isCut }) => isCut !== true || event < firstLost);
      return kept.slice(
        Math.max(
          0,
          kept.findLastIndex(({ event, isCut }) => isCut === true && event <= lastCut),
        ),
      );
    };
    const size = random.pick(possible(this.#sizes));
    const sizeBefore = this.#sizes.findLast(({ event }) => event < firstLost)?.value ?? 0;
    const chosen = new Map<number, number>();
    const split = random.whole(0, Math.ceil(this.#size / SECTOR_BYTES));
    const timeOf = (number: number, versions: readonly Version<unknown>[]) => {
      if (order === 'ascending') return number < split ? Number.POSITIVE_INFINITY : -1;
      if (order === 'descending') return number >= split ? Number.POSITIVE_INFINITY : -1;
      const group = Math.floor(number / order);
      const time = chosen.get(group) ?? random.pick(versions).event;
      chosen.set(group, time);
      return time;
    };
    return this.#bytes(size.event < firstLost ? size.value : Math.max(size.value, sizeBefore), (all, number) => {
      const versions = possible(all);
      const time = timeOf(number, versions);
      return versions.findLast(({ event }) => event <= time) ?? versions[0];
    });
  }

  #bytes(size: number, pick: (versions: Version<Buffer>[], number: number) => Version<Buffer> | undefined): Buffer {
    const bytes = Buffer.alloc(size);
    for (const [number, { versions }] of this.#sectors) {
      const at = number * SECTOR_BYTES;
      if (at < size) pick(versions, number)?.value.copy(bytes, at);
    }
    return bytes;
  }
}

/**
 * One directory on a disk that writes what was not synced at any time, in any order, by sectors of 512 bytes: also in
 * orders that ext4 would prevent. A sector is on the disk as it was at its last sync, or after any later write.
 */
export class SimulatedDisk {
  readonly #directory: string;
  readonly #names = new Map<string, Version<SimulatedFile | null>[]>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @param index of the event among all */
  apply(event: DiskEvent, index: number): void {
    if (event.kind === 'message') return;
    const { path } = event;
    if (event.kind === 'sync' && path === this.#directory) {
      for (const versions of this.#names.values()) if (!event.hasFailed) settle(versions, event.began, () => true);
      return;
    }
    const versions = this.#versionsOf(path);
    const file = versions.at(-1)?.value ?? null;
    if (event.kind === 'create') {
      if (file === null) versions.push({ event: index, value: new SimulatedFile() });
    } else if (event.kind === 'sync') file?.sync(event.began, event.hasFailed);
    else if (event.kind === 'write') file?.write(index, event.at, event.bytes);
    else if (event.kind === 'truncate') file?.truncate(index, event.size);
    else {
      if ('to' in event) this.#versionsOf(event.to).push({ event: index, value: file });
      if (event.kind !== 'link') versions.push({ event: index, value: null });
    }
  }

  #versionsOf(path: string): Version<SimulatedFile | null>[] {
    const versions = this.#names.get(path) ?? [{ event: -1, value: null }];
    this.#names.set(path, versions);
    return versions;
  }

  /** The files as the process sees them, by path. */
  current(): Map<string, Buffer> {
    return this.#files((versions) => versions.at(-1)?.value?.current());
  }

  /** The files that may be on the disk after a power cut, by path. Names change in order, as in the journal of ext4. */
  afterPowerCut(random: SeededRandom): Map<string, Buffer> {
    const time = random.pick([...this.#names.values()].flat()).event;
    return this.#files((versions) => {
      const named = versions.findLast(({ event }) => event <= time) ?? versions[0];
      return named?.value?.afterPowerCut(random, random.pick(WRITE_ORDERS));
    });
  }

  #files(read: (versions: Version<SimulatedFile | null>[]) => Buffer | undefined): Map<string, Buffer> {
    const files = new Map<string, Buffer>();
    for (const [path, versions] of this.#names) {
      const bytes = read(versions);
      if (bytes !== undefined) files.set(path, bytes);
    }
    return files;
  }
}

/**
 * The events in a log of strace with the options `-f -y -xx`. A write counts from its begin, a sync from its end.
 * @param messages the file to which the process writes messages
 */
export function parseDiskEvents(log: string, messages: string): DiskEvent[] {
  const events: DiskEvent[] = [];
  const syncs = new Map<string, { readonly call: string; readonly path: string; readonly began: number }>();
  const decode = (hex = '') => Buffer.from(hex.replaceAll('\\x', ''), 'hex');
  for (const line of log.split('\n')) {
    const [, thread = '', resumed, call = resumed, rest = ''] =
      /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)/.exec(line) ?? [];
    const [, on] = /<([^>]*)>/.exec(rest) ?? [];
    const [, text] = /"([^"]*)"/.exec(rest) ?? [];
    const path = decode(on).toString();
    if (call?.endsWith('sync')) {
      const sync = syncs.get(thread) ?? { call, path, began: events.length };
      if (rest.endsWith('<unfinished ...>')) syncs.set(thread, sync);
      else {
        syncs.delete(thread);
        events.push({ kind: 'sync', ...sync, hasFailed: !/ = 0$/.test(rest) });
      }
    } else if (resumed !== undefined) continue;
    else if (call === 'pwrite64' && text !== undefined) {
      events.push({ kind: 'write', path, at: Number(/", \d+, (\d+)/.exec(rest)?.[1]), bytes: decode(text) });
    } else if (call === 'ftruncate' && rest.endsWith(' = 0')) {
      events.push({ kind: 'truncate', path, size: Number(/>, (\d+)/.exec(rest)?.[1]) });
    } else if (call === 'write' && path === messages) events.push({ kind: 'message', text: decode(text).toString() });
    else if (call === 'link' || call === 'rename') {
      events.push({ kind: call, path: decode(text).toString(), to: decode(/", "([^"]*)"/.exec(rest)?.[1]).toString() });
    } else if (call === 'unlink') events.push({ kind: 'unlink', path: decode(text).toString() });
    else if (call === 'openat' && rest.includes('O_CREAT') && decode(text).toString() !== messages)
      events.push({ kind: 'create', path: decode(text).toString() });
  }
  return events;
}
