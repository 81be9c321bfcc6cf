import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Random } from '../core/random.ts';

/** The randomness of the operating system; only `fraction` is not cryptographically strong. */
export const systemRandom: Random = {
  token: (bytes) => randomBytes(bytes).toString('base64url'),
  uuid: () => randomUUID(),
  below: (limit) => randomInt(limit),
  fraction: () => Math.random(),
};
