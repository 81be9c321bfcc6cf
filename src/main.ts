#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Compiled code is kept for the next start, in a folder of the user's own: Node's default below /tmp is anybody's to
// prepare. Where there is none, or it can't be written, nothing is kept.
const { XDG_CACHE_HOME, HOME } = process.env;
const caches = XDG_CACHE_HOME ?? (HOME === undefined ? undefined : join(HOME, '.cache'));
if (caches !== undefined) enableCompileCache(join(caches, 'latchkey'));

const { run } = await import('./cli/program.ts');
await run(process.argv.slice(2));
