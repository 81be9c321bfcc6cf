import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** One request as it was received. */
export interface RawRequest {
  /** The connection's number, from 1. */
  readonly connection: number;
  readonly method: string;
  /** The request target: path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A server without any protocol logic: the test writes the bytes that it sends. */
export interface RawServer extends AsyncDisposable {
  readonly port: number;
  readonly origin: string;
  /** The number of established connections, TLS included. */
  readonly connections: number;
  /** The requests that arrived completely. */
  readonly requests: readonly RawRequest[];
}

/** @param respond called with each complete request; it writes to the socket, ends it or destroys it */
export async function startRawServer(
  respond: (socket: Socket, request: RawRequest) => void,
  tls?: { readonly key: string; readonly cert: string },
): Promise<RawServer> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  function connected(socket: Socket): void {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (piece) => {
      received += piece;
      for (let next = takeRequest(received); next !== null; next = takeRequest(received)) {
        received = next.rest;
        const request = { connection, ...next.request };
        requests.push(request);
        respond(socket, request);
      }
    });
  }

  const server: Server = tls === undefined ? createTcpServer(connected) : createTlsServer(tls, connected);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    origin: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A complete HTTP/1.1 response. */
export function httpResponse(status: number, body: string, headers: Record<string, string> = {}): string {
  const all = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n${body}`;
}

function takeRequest(received: string): { request: Omit<RawRequest, 'connection'>; rest: string } | null {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [first = '', ...lines] = received.slice(0, end).split('\r\n');
  const [method = '', target = ''] = first.split(' ');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = Number(headers['content-length'] ?? 0);
  const body = received.slice(end + 4, end + 4 + length);
  if (body.length < length) return null;
  return { request: { method, target, headers, body }, rest: received.slice(end + 4 + length) };
}
