// An OCI image layout: https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md
import { createHash } from 'node:crypto';
import { createWriteStream, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';

/** A reference to a blob (OCI image specification, content descriptors). */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly [member: string]: unknown;
}

/** A layout that is being written to a folder. */
export class ImageLayout {
  readonly #folder: string;

  /** @param folder is replaced */
  constructor(folder: string) {
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'blobs/sha256'), { recursive: true });
    writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  }

  /** @returns its descriptor, with `members` in addition */
  addBlob(bytes: Uint8Array, mediaType: string, members: Readonly<Record<string, unknown>> = {}): Descriptor {
    const hash = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(this.#folder, 'blobs/sha256', hash), bytes);
    return { mediaType, digest: `sha256:${hash}`, size: bytes.length, ...members };
  }

  /** Adds a document as JSON; a `mediaType` member of it becomes the descriptor's. */
  addJson(document: object, mediaType: string, members: Readonly<Record<string, unknown>> = {}): Descriptor {
    return this.addBlob(Buffer.from(JSON.stringify(document)), mediaType, members);
  }

  /** Makes `image` the only entry of the layout, so that tools need no name to find it. */
  finish(image: Descriptor): void {
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [image] };
    writeFileSync(join(this.#folder, 'index.json'), JSON.stringify(index));
  }

  /** Writes the layout as an OCI archive. @param epoch the time of its files, in seconds since 1970 */
  async archive(file: string, epoch: number): Promise<void> {
    const archive = pack();
    const written = pipeline(archive, createWriteStream(file));
    for (const path of readdirSync(this.#folder, { recursive: true, encoding: 'utf8' }).sort()) {
      const isDirectory = statSync(join(this.#folder, path)).isDirectory();
      const mtime = new Date(epoch * 1000);
      if (isDirectory) archive.entry({ name: `${path}/`, type: 'directory', mode: 0o755, mtime });
      else archive.entry({ name: path, mode: 0o644, mtime }, readFileSync(join(this.#folder, path)));
    }
    archive.finalize();
    await written;
  }
}

export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
export const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
export const OCI_EMPTY = 'application/vnd.oci.empty.v1+json';
