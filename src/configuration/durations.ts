const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a duration such as "5s", "15m", "2h" or "1d"; null where it is none. @returns milliseconds */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (digits === undefined || !isUnit(unit)) return null;
  return Number(digits) * UNITS[unit];
}

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && Object.hasOwn(UNITS, unit);
}
