import { join } from 'node:path';
import { root } from '../project/checkout.ts';

/**
 * For the `XDG_CACHE_HOME` of every `latchkey` that tests start: with the compiled code of those before it, a process
 * takes half the work to start.
 */
export const SHARED_CACHE = join(root, '.cache');
