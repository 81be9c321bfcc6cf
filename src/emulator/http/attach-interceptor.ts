import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Exchange, Interceptor } from '../settings/options.ts';
import { received } from './received.ts';

/** Lets the interceptor see every request of an origin except those under `/_emulator/`. */
export function attachInterceptor(app: FastifyInstance, interceptor: Interceptor): void {
  if (interceptor.received !== undefined) {
    app.addHook('preHandler', async (request, reply) => {
      const exchange = exchangeOf(request);
      if (exchange === null) return;
      await interceptor.received?.(exchange);
      if (request.raw.socket.destroyed) reply.hijack();
    });
  }
  if (interceptor.answering !== undefined) {
    app.addHook('onSend', async (request, reply) => {
      const exchange = exchangeOf(request);
      if (exchange !== null) await interceptor.answering?.(exchange, reply.statusCode);
    });
  }
}

function exchangeOf(request: FastifyRequest): Exchange | null {
  const came = received(request);
  if (came.endpoint === null) return null;
  return { endpoint: came.endpoint, client: came.client, drop: () => request.raw.socket.destroy() };
}
