import { readFileSync } from 'node:fs';
import * as v from 'valibot';

let known: string | undefined;

/** This Latchkey's version, as package.json said when it was asked first: a package may be updated while its hub runs. */
export function version(): string {
  known ??= readVersion();
  return known;
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return v.parse(v.object({ version: v.string() }), JSON.parse(manifest)).version;
}
