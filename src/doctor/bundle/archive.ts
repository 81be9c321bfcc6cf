import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { pack } from 'tar-stream';

/** A file of the archive. */
export interface Part {
  readonly name: string;
  readonly text: string;
}

/**
 * Puts files into a `tar.gz`, each closed to everybody else.
 * @param folder that they are in when it is unpacked
 * @param wall ms since 1970: when it was made
 */
export async function archive(parts: readonly Part[], folder: string, wall: number): Promise<Buffer> {
  const tar = pack();
  const bytes = buffer(tar);
  for (const { name, text } of parts) {
    tar.entry({ name: `${folder}/${name}`, mode: 0o600, mtime: new Date(wall) }, text);
  }
  tar.finalize();
  return promisify(gzip)(await bytes);
}
