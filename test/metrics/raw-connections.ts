import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/**
 * Sends bytes to a port of 127.0.0.1.
 * @returns what was received until the connection ended or `isEnough` was true
 */
export async function sendRaw(
  port: number | null,
  bytes: string,
  isEnough: (received: string) => boolean = () => false,
): Promise<string> {
  const socket = connect(port ?? 0, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1');
  socket.write(bytes);
  for await (const chunk of socket) {
    received += chunk;
    if (isEnough(received)) break;
  }
  socket.destroy();
  return received;
}

/** Opens a connection that sends nothing. */
export async function openIdleConnection(port: number | null): Promise<Socket> {
  const socket = connect(port ?? 0, '127.0.0.1')
    .on('error', () => undefined)
    .resume();
  await once(socket, 'connect');
  return socket;
}
