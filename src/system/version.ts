import { readFileSync } from 'node:fs';
import * as v from 'valibot';

let cached: string | undefined;

/** The version from package.json, read once: the package may be updated while its hub runs. */
export function version(): string {
  cached ??= readVersion();
  return cached;
}

/** The `User-Agent` of every request that the hub sends (RFC 9110, 10.1.5): firewalls refuse requests without one. */
export function userAgent(): string {
  return `latchkey/${version()}`;
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return v.parse(v.object({ version: v.string() }), JSON.parse(manifest)).version;
}
