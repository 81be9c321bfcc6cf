import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Random } from '../core/random.ts';

/** The operating system's randomness. */
export const systemRandom: Random = {
  token: (bytes) => randomBytes(bytes).toString('base64url'),
  uuid: () => randomUUID(),
  below: (limit) => randomInt(limit),
  fraction: () => Math.random(),
};
