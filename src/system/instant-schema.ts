import * as v from 'valibot';

/** An `Instant` (src/core/clock.ts), as it is kept. */
export const instantSchema = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
