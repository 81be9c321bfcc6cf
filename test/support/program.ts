import { join } from 'node:path';
import { root } from '../project/checkout.ts';

/** The program as it is built, which is what ships and starts quicker than the sources. A run that takes long has the build that it began with. */
export const MAIN = process.env['LATCHKEY_TEST_MAIN'] ?? join(root, 'dist/main.js');

/**
 * For the `XDG_CACHE_HOME` of every `latchkey` that tests start: with the compiled code of those before it, a process
 * takes half the work to start.
 */
export const SHARED_CACHE = join(root, '.cache');

/** For the `GOCACHE` of Go's compiler. */
export const GO_CACHE = join(SHARED_CACHE, 'go');
