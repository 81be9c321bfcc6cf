import type { FastifyInstance, FastifyRequest } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import type { Client } from '../client.ts';
import { endpointOf } from '../http/endpoint.ts';
import { clientOf, formParameters } from '../http/request-form.ts';
import { replaceAnswer, writeAnswer } from './answer.ts';
import type { Faults, Struck } from './faults.ts';
import type { OriginLine } from './origin-line.ts';

/** Learns which fault struck a request, and which status that gives it, where it is another one than the right one. */
export type StruckListener = (request: FastifyRequest, fault: string, status?: number) => void;

/**
 * Lets faults strike the requests of an origin, except those under `/_emulator/`. To be attached after everything else,
 * so that a fault has the last word.
 */
export function attachFaults(
  app: FastifyInstance,
  faults: Faults,
  line: OriginLine,
  clients: ReadonlyMap<string, Client>,
  struckBy: StruckListener,
): void {
  const open = new WeakMap<FastifyRequest, Struck>();

  app.addHook('preHandler', async (request, reply) => {
    const endpoint = endpointOf(request);
    if (endpoint === null) return;
    const grantType = formParameters(request)?.get('grant_type') ?? null;
    const struck = faults.strike({ endpoint, client: clientOf(request, clients), grantType });
    if (struck === null) return;
    struckBy(request, struck.id);
    const { fault } = struck;
    if (fault.kind === 'reset_before') {
      line.reset(request.raw.socket);
      reply.hijack();
    } else if (fault.kind === 'hang' && fault.commit !== true) {
      reply.hijack();
    } else if (fault.kind === 'delay' && fault.commit !== true) {
      await systemTimers.sleep(1000 * fault.seconds, connectionGone(reply.raw));
    } else {
      open.set(request, struck);
      // The answer comes in onSend; what is sent here only keeps the handler from being called.
      if ('commit' in fault && fault.commit !== true) return reply.send('');
    }
  });

  app.addHook('onSend', async (request, reply, payload) => {
    const struck = open.get(request);
    if (struck === undefined) return payload;
    open.delete(request);
    const { fault, id } = struck;
    switch (fault.kind) {
      case 'status':
      case 'redirect':
      case 'not_json': {
        const body = replaceAnswer(reply, fault);
        struckBy(request, id, reply.statusCode);
        return body;
      }
      case 'content_type':
        reply.header('content-type', fault.contentType);
        return payload;
      case 'wrong_date': {
        const date = Date.parse(String(reply.getHeader('date')));
        reply.header('date', new Date(date + 1000 * fault.offset).toUTCString());
        return payload;
      }
      case 'delay':
        await systemTimers.sleep(1000 * fault.seconds, connectionGone(reply.raw));
        return payload;
      case 'commit_then_drop':
        line.reset(request.raw.socket);
        return never();
      case 'truncate':
      case 'slow_body':
      case 'oversize':
        await writeAnswer(reply, payload, fault, connectionGone(reply.raw));
        return never();
      default:
        return never();
    }
  });
}

/** Where an answer is lost or was written past Fastify: it must not write one too. */
function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}

function connectionGone(raw: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  return gone.signal;
}
