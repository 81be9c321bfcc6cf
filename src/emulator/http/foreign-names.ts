import type { FastifyInstance } from 'fastify';
import { isOwnHost } from '../../system/host-check.ts';

/**
 * Refuses requests that were meant for another host, with 421 (RFC 9110, 15.5.20): a web page can make a name of its own point
 * to the emulator (DNS rebinding), and would read the tokens and the log of whoever has it open.
 * @param names that requests may be for, in lower case; IP addresses are accepted
 */
export function refuseForeignNames(app: FastifyInstance, names: readonly string[]): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (isOwnHost(headers.host, names)) return;
    const found = headers.host === undefined ? 'none' : JSON.stringify(headers.host.slice(0, 100));
    return reply.code(421).send({
      error: 'invalid_request',
      message: `Host: found ${found}; allowed are IP addresses, localhost and names that the emulator was started with: --allowed-host NAME (in the library allowedHosts)`,
    });
  });
}
