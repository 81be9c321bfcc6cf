import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import { Places } from './places.ts';

/** The address does not exist on this machine, as `::` where IPv6 is off. */
const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/**
 * Listens on one port at several addresses, a server each; an address that the machine does not have is passed over as
 * long as one is left.
 * @param key the configuration's key for the port, for the message
 * @returns the port; where 0 was asked for, the same free one at all addresses
 * @throws Failure `port_unavailable`
 */
export async function listen<Server extends HttpServer | HttpsServer>(
  create: () => Server,
  addresses: readonly string[],
  port: number,
  key: string,
): Promise<{ port: number; servers: Server[] }> {
  const servers: Server[] = [];
  let chosen = port;
  let failure: unknown;
  for (const host of addresses) {
    const server = create();
    places.set(server, new Places(server));
    try {
      server.listen({ host, port: chosen, ipv6Only: host.includes(':') });
      await once(server, 'listening');
    } catch (error) {
      failure = error;
      if (error instanceof Error && 'code' in error && NO_SUCH_ADDRESS.includes(String(error.code))) continue;
      for (const opened of servers) opened.close();
      throw unavailable(key, host, chosen, error);
    }
    chosen = (server.address() as AddressInfo).port;
    servers.push(server);
  }
  if (servers.length === 0) throw unavailable(key, addresses.join(', '), port, failure);
  return { port: chosen, servers };
}

/** Who is connected to each server. */
const places = new WeakMap<HttpServer, Places>();

/** Requests under way get so long to end, in ms. */
const GRACE = 3000;

/** Stops taking connections, closes the idle ones, and cuts the others off when their time is up. */
export async function close(servers: readonly (HttpServer | HttpsServer)[], timers: Timers): Promise<void> {
  await Promise.all(
    servers.map(async (server) => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const cancel = timers.after(GRACE, () => {
        for (const socket of places.get(server)?.sockets ?? []) socket.destroy();
      });
      await closed;
      cancel();
    }),
  );
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has it; stop that program or choose another port',
  EACCES: 'this user may not open it; choose a port above 1023',
};

function unavailable(key: string, host: string, port: number, cause: unknown): Failure {
  const code = cause instanceof Error && 'code' in cause ? cause.code : '';
  const message = NO_SUCH_ADDRESS.includes(String(code))
    ? `lan.listen: ${host} is no address of this machine; name one that is, or leave the key out`
    : `${key}: port ${port} on ${host}: ${REASONS[String(code)] ?? 'it can not be opened; choose another port'}`;
  return new Failure('port_unavailable', message, { cause });
}
