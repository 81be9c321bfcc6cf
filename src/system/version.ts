import { readFileSync } from 'node:fs';
import * as v from 'valibot';

/** This Latchkey's version, as package.json says. */
export function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return v.parse(v.object({ version: v.string() }), JSON.parse(manifest)).version;
}
