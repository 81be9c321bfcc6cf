// Layers of images: tar archives whose bytes depend only on their entries.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';

/** A file, directory or symbolic link in a layer. */
export interface LayerEntry {
  /** Relative to the root directory, without a slash at the end. */
  readonly path: string;
  readonly type: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  /** The user id and the group id; default: 0. */
  readonly owner?: number;
  /** In seconds since 1970. */
  readonly mtime: number;
  /** The target of a symbolic link. */
  readonly target?: string;
  readonly content?: Uint8Array;
}

/** A compressed layer. */
export interface Layer {
  /** The SHA-256 of the uncompressed archive, hex. */
  readonly diffId: string;
  readonly bytes: Buffer;
  /** What the layer contains, for the image's history. */
  readonly comment: string;
}

/** The options of {@link createLayer}. */
export interface LayerOptions {
  readonly comment: string;
  /** The compression level of gzip. */
  readonly level: number;
  /** The folder of compressed layers: Node.js changes rarely, and takes ten seconds to compress. */
  readonly cache: string;
}

/** Creates a layer. The same entries, in any order, give the same bytes. */
export async function createLayer(
  entries: readonly LayerEntry[],
  { comment, level, cache }: LayerOptions,
): Promise<Layer> {
  const archive = pack();
  for (const entry of [...entries].sort(byPath)) archive.entry(header(entry), Buffer.from(entry.content ?? []));
  archive.finalize();
  const bytes = await buffer(archive);
  const diffId = createHash('sha256').update(bytes).digest('hex');
  const kept = join(cache, `${diffId}-${level}.gz`);
  if (!existsSync(kept)) {
    mkdirSync(cache, { recursive: true });
    // Not Node's zlib, whose output depends on the processor.
    const compressed = execFileSync('gzip', ['-n', `-${level}`], { input: bytes, maxBuffer: 2 ** 30 });
    writeFileSync(`${kept}.${process.pid}`, compressed);
    renameSync(`${kept}.${process.pid}`, kept);
  }
  return { diffId, bytes: readFileSync(kept), comment };
}

function header({ path, type, mode, owner = 0, mtime, target, content }: LayerEntry) {
  return {
    name: type === 'directory' ? `${path}/` : path,
    type,
    mode,
    uid: owner,
    gid: owner,
    mtime: new Date(mtime * 1000),
    size: content?.length ?? 0,
    ...(target !== undefined && { linkname: target }),
  };
}

/** A directory comes before what it contains. */
function byPath(a: LayerEntry, b: LayerEntry): number {
  return a.path < b.path ? -1 : 1;
}
