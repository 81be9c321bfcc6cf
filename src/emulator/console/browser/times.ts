/** The time of day of an instant (RFC 3339), UTC: `06:07:08`. */
export function clockTime(instant: string): string {
  return instant.slice(11, 19);
}

/** An instant (RFC 3339) for people, UTC: `2031-05-05 06:07:08`. */
export function dateAndTime(instant: string): string {
  return instant.slice(0, 19).replace('T', ' ');
}

/** A time span in its largest two units: `1 h 30 min`. @param seconds zero or more */
export function duration(seconds: number): string {
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ') || '0 s';
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;
