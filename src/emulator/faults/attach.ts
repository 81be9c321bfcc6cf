import type { FastifyInstance, FastifyRequest } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import { received } from '../http/received.ts';
import type { RequestLog } from '../log/request-log.ts';
import { replaceAnswer, writeAnswer } from './answer.ts';
import type { FaultMatch, Faults } from './faults.ts';
import type { OriginListener } from './origin-listener.ts';

/**
 * Lets faults strike the requests of an origin, except those under `/_emulator/`. To be attached after everything else,
 * so that a fault has the last word.
 */
export function attachFaults(app: FastifyInstance, faults: Faults, listener: OriginListener, log: RequestLog): void {
  const open = new WeakMap<FastifyRequest, FaultMatch>();

  app.addHook('preHandler', (request, reply, done) => {
    const came = received(request);
    if (came.endpoint === null || faults.none) return done();
    const grantType = came.form?.get('grant_type') ?? null;
    const struck = faults.strike({ endpoint: came.endpoint, client: came.client, grantType });
    if (struck === null) return done();
    log.struck(request, struck.id);
    const { fault } = struck;
    if (fault.kind === 'reset_before') {
      listener.reset(request.raw.socket);
      reply.hijack();
    } else if (fault.kind === 'hang' && fault.commit !== true) {
      reply.hijack();
    } else if (fault.kind === 'delay' && fault.commit !== true) {
      void systemTimers.sleep(1000 * fault.seconds, connectionGone(reply.raw)).then(() => done());
    } else {
      open.set(request, struck);
      // The answer comes in onSend; what is sent here only keeps the handler from being called.
      if ('commit' in fault && fault.commit !== true) reply.send('');
      else done();
    }
  });

  app.addHook('onSend', (request, reply, payload, done) => {
    const struck = open.get(request);
    if (struck === undefined) return done();
    open.delete(request);
    const { fault, id } = struck;
    switch (fault.kind) {
      case 'status':
      case 'redirect':
      case 'not_json': {
        const body = replaceAnswer(reply, fault);
        log.struck(request, id, reply.statusCode);
        return done(null, body);
      }
      case 'content_type':
        reply.header('content-type', fault.contentType);
        return done();
      case 'wrong_date': {
        const date = Date.parse(String(reply.getHeader('date')));
        reply.header('date', new Date(date + 1000 * fault.offset).toUTCString());
        return done();
      }
      case 'delay':
        void systemTimers.sleep(1000 * fault.seconds, connectionGone(reply.raw)).then(() => done());
        return;
      // From here on the answer is lost or written past Fastify: without done() it writes none.
      case 'commit_then_drop':
        listener.reset(request.raw.socket);
        return;
      case 'truncate':
      case 'slow_body':
      case 'oversize':
        void writeAnswer(reply, payload, fault, connectionGone(reply.raw));
    }
  });
}

function connectionGone(raw: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  return gone.signal;
}
