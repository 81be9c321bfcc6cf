import { isIP, isIPv6 } from 'node:net';

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
