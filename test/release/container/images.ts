// The container images of this tree, and their content.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import * as v from 'valibot';
import { scaleDeadline } from '../../support/deadlines.ts';

const run = promisify(execFile);
const TEST_IMAGE = join(import.meta.dirname, '../../../scripts/test-image');

/** How long the first build may take, in ms: it downloads Node.js and Debian packages for both architectures. */
export const BUILD_TIMEOUT = scaleDeadline(120_000);

/**
 * The folder with the images of this tree: with package.json's version for all architectures, with another one for this
 * machine's. They are built once.
 */
export async function buildImages(version?: string): Promise<string> {
  const { stdout } = await run(TEST_IMAGE, version === undefined ? [] : [version]);
  return stdout.trim();
}

const descriptorSchema = v.looseObject({ mediaType: v.string(), digest: v.string(), size: v.number() });
const platformSchema = v.object({ architecture: v.string(), os: v.string() });
const indexSchema = v.object({
  manifests: v.array(
    v.looseObject({
      ...descriptorSchema.entries,
      artifactType: v.optional(v.string()),
      platform: v.optional(platformSchema),
      annotations: v.optional(v.record(v.string(), v.string())),
    }),
  ),
});
const manifestSchema = v.looseObject({
  config: descriptorSchema,
  layers: v.array(descriptorSchema),
  subject: v.optional(descriptorSchema),
  annotations: v.record(v.string(), v.string()),
});

/** In bytes. */
const MAX_TEXT = 1_000_000;

/** A file, directory or link in an image. */
export type ImageFile = Pick<Header, 'name' | 'type' | 'mode' | 'uid' | 'gid' | 'linkname'> & {
  /** Empty for large files, which are programs. */
  readonly content: string;
};

/** An OCI image layout that is being read. */
export class LayoutReader {
  readonly folder: string;
  readonly #files = new Map<string, Promise<Map<string, ImageFile>>>();

  constructor(folder: string) {
    this.folder = folder;
  }

  blob(digest: string): Promise<Buffer> {
    return readFile(join(this.folder, 'blobs', digest.replace(':', '/')));
  }

  /** The index of the layout itself. */
  async top() {
    return v.parse(indexSchema, JSON.parse(await readFile(join(this.folder, 'index.json'), 'utf8')));
  }

  /** The index of the image: what it has for each platform. */
  async index() {
    const [image] = (await this.top()).manifests;
    return v.parse(indexSchema, JSON.parse((await this.blob(image?.digest ?? '')).toString()));
  }

  async manifest(digest: string) {
    return v.parse(manifestSchema, JSON.parse((await this.blob(digest)).toString()));
  }

  /** The manifest for one architecture, by its Debian name. */
  async platform(arch: string) {
    const found = (await this.index()).manifests.find(({ platform }) => platform?.architecture === arch);
    if (found === undefined) throw new Error(`the image has no manifest for ${arch}`);
    return { descriptor: found, manifest: await this.manifest(found.digest) };
  }

  /** All files of the image for one architecture, by their paths; an upper layer replaces those of a lower one. */
  files(arch: string): Promise<Map<string, ImageFile>> {
    const found = this.#files.get(arch) ?? this.#readFiles(arch);
    this.#files.set(arch, found);
    return found;
  }

  async #readFiles(arch: string): Promise<Map<string, ImageFile>> {
    const { manifest } = await this.platform(arch);
    const files = new Map<string, ImageFile>();
    for (const { digest } of manifest.layers) {
      const reader = extract();
      reader.end(gunzipSync(await this.blob(digest)));
      for await (const entry of reader) {
        const { name, type, mode, uid, gid, linkname, size = 0 } = entry.header;
        const path = name.replace(/\/$/, '');
        const content = size < MAX_TEXT ? await text(entry) : '';
        entry.resume();
        files.set(path, { name: path, type, mode, uid, gid, linkname, content });
      }
    }
    return files;
  }
}
