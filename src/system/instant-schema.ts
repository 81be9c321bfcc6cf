import * as v from 'valibot';

/** An `Instant` (src/core/clock.ts) in the store. */
export const instantSchema = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
