import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * The socket that came, where TLS has put another one in front of it; else the same. Node has no public name for it.
 * @param socket of a request, or of a TLS handshake
 */
export function beneath<S extends Duplex>(socket: S): S | Socket {
  const parent: unknown = Reflect.get(socket, '_parent');
  return parent instanceof Socket ? parent : socket;
}
