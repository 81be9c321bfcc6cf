import { join } from 'node:path';
import { root } from '../project/checkout.ts';

/**
 * The built program, which is what ships and starts faster than the sources. A long run keeps the build that it started
 * with.
 */
export const MAIN = process.env['LATCHKEY_TEST_MAIN'] ?? join(root, 'dist/main.js');

/**
 * `XDG_CACHE_HOME` of every `latchkey` that tests start: with the compile cache of earlier processes, a process takes
 * half the work to start.
 */
export const SHARED_CACHE = join(root, '.cache');

/** `GOCACHE` of Go's compiler. */
export const GO_CACHE = join(SHARED_CACHE, 'go');
