import { isIP, isIPv6 } from 'node:net';

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Parses a duration such as "5s", "15m", "2h" or "1d". @returns milliseconds; null if the text is no duration */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (digits === undefined || !isUnit(unit)) return null;
  return Number(digits) * UNITS[unit];
}

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && Object.hasOwn(UNITS, unit);
}

/** An address to listen on. */
export interface SocketAddress {
  /** An IP address, without brackets. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** Parses an IP address and a port, such as `127.0.0.1:9480` or `[::1]:9480`; null for anything else. */
export function parseSocketAddress(text: string): SocketAddress | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? '';
  const port = Number(digits);
  if (isIP(host) === 0 || isIPv6(host) !== (bracketed !== undefined) || port > 65_535) return null;
  return { host, port };
}
