const UNITS = { s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Reads a duration such as "5s", "15m" or "2h"; null where it is none. @returns milliseconds */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^(\d{1,6})([smh])$/.exec(text) ?? [];
  if (digits === undefined || (unit !== 's' && unit !== 'm' && unit !== 'h')) return null;
  return Number(digits) * UNITS[unit];
}
