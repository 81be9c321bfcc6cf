import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/**
 * Sends bytes to a port of 127.0.0.1.
 * @returns what came back until the connection ended, or what had come was enough
 */
export async function sendRaw(
  port: number | null,
  bytes: string,
  isEnough: (answer: string) => boolean = () => false,
): Promise<string> {
  const socket = connect(port ?? 0, '127.0.0.1');
  let answer = '';
  socket.setEncoding('latin1');
  socket.write(bytes);
  for await (const chunk of socket) {
    answer += chunk;
    if (isEnough(answer)) break;
  }
  socket.destroy();
  return answer;
}

/** Opens a connection that says nothing, and waits a moment for the other end to be rid of it. */
export async function openIdleConnection(port: number | null): Promise<Socket> {
  const socket = connect(port ?? 0, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.resume();
  await Promise.race([once(socket, 'close'), new Promise((resolve) => setTimeout(resolve, 300))]);
  return socket;
}
