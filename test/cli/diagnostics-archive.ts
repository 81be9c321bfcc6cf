import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';

/** The files of a diagnostics archive, with paths relative to its folder. */
export async function unpackDiagnostics(archive: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for await (const entry of Readable.from([gunzipSync(readFileSync(archive))]).pipe(extract())) {
    const pieces: Buffer[] = [];
    for await (const piece of entry) pieces.push(piece as Buffer);
    files.set(entry.header.name.replace(/^latchkey-diagnostics\//, ''), Buffer.concat(pieces).toString('utf8'));
  }
  return files;
}
