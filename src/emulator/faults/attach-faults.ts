import { once } from 'node:events';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import { requestContext } from '../http/request-context.ts';
import type { RequestLog } from '../http/request-log.ts';
import type { FaultMatch, Faults } from './faults.ts';
import type { FaultOptions, ReplacementFault } from './kinds.ts';
import type { OriginListener } from './origin-listener.ts';

/** What a captive portal says. */
const CAPTIVE_PORTAL_PAGE =
  '<!DOCTYPE html>\n<title>Welcome</title>\n<p>Please accept our terms of use to go on.</p>\n';

/** Headers that every answer has, a faulty one too; they say nothing of the right answer. */
const COMMON_HEADERS = new Set(['date', 'cache-control', 'pragma', 'x-content-type-options']);

/** Bytes of padding written at once. */
const PADDING = Buffer.alloc(65_536, ' ');

/** Milliseconds between two pieces of a slow body, unless it is one of less than a byte in that time. */
const DRIP_INTERVAL_MS = 50;

/**
 * Lets faults strike the requests of an origin, except those under `/_emulator/`. To be attached after everything else,
 * so that a fault has the last word.
 */
export function attachFaults(app: FastifyInstance, faults: Faults, listener: OriginListener, log: RequestLog): void {
  const open = new WeakMap<FastifyRequest, FaultMatch>();

  app.addHook('preHandler', (request, reply, done) => {
    const came = requestContext(request);
    if (came.endpoint === null || faults.isEmpty) return done();
    const grantType = came.form?.get('grant_type') ?? null;
    const struck = faults.match({ endpoint: came.endpoint, client: came.client, grantType });
    if (struck === null) return done();
    log.recordFault(request, struck.id);
    const { fault } = struck;
    if (fault.kind === 'reset_before') {
      listener.reset(request.raw.socket);
      reply.hijack();
    } else if (fault.kind === 'hang' && fault.commit !== true) {
      reply.hijack();
    } else if (fault.kind === 'delay' && fault.commit !== true) {
      void systemTimers.sleep(1000 * fault.seconds, connectionClosedSignal(reply.raw)).then(() => done());
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
        const body = replaceResponse(reply, fault);
        log.recordFault(request, id, reply.statusCode);
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
        void systemTimers.sleep(1000 * fault.seconds, connectionClosedSignal(reply.raw)).then(() => done());
        return;
      // From here on the answer is lost or written past Fastify: without done() it writes none.
      case 'commit_then_drop':
        listener.reset(request.raw.socket);
        return;
      case 'truncate':
      case 'slow_body':
      case 'oversize':
        void writeResponse(reply, payload, fault, connectionClosedSignal(reply.raw));
    }
  });
}

function connectionClosedSignal(raw: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Puts status and headers of another answer in place of the right ones. @returns its body */
function replaceResponse(reply: FastifyReply, fault: ReplacementFault): string {
  for (const name of Object.keys(reply.getHeaders())) if (!COMMON_HEADERS.has(name)) reply.removeHeader(name);
  reply.code(fault.kind === 'not_json' ? 200 : (fault.status ?? 302));
  if (fault.kind === 'redirect') {
    reply.header('location', fault.location);
    return '';
  }
  reply.header('content-type', 'application/json');
  if (fault.kind === 'not_json') return CAPTIVE_PORTAL_PAGE;
  for (const [name, value] of Object.entries(fault.headers ?? {})) reply.header(name, value);
  return fault.body ?? '';
}

/**
 * Writes an answer past Fastify, cut, slowly or with too much behind it.
 * @param gone aborted when the connection is
 */
async function writeResponse(
  reply: FastifyReply,
  payload: unknown,
  fault: Extract<FaultOptions, { readonly kind: 'truncate' | 'slow_body' | 'oversize' }>,
  gone: AbortSignal,
): Promise<void> {
  const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.from(payload) : Buffer.alloc(0);
  const padding = fault.kind === 'oversize' ? Math.max(0, fault.bytes - body.length) : 0;
  const { raw } = reply;
  reply.header('content-length', body.length + padding);
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  raw.flushHeaders();
  if (fault.kind === 'truncate') {
    if (fault.bytes > 0) raw.write(body.subarray(0, fault.bytes));
    raw.socket?.destroySoon();
    return;
  }
  if (fault.kind === 'slow_body') await writeSlowly(raw, body, fault.bytesPerSecond, gone);
  else raw.write(body);
  for (let left = padding; left > 0 && !gone.aborted; left -= PADDING.length) {
    if (!raw.write(PADDING.subarray(0, left))) await once(raw, 'drain', { signal: gone }).catch(() => undefined);
  }
  raw.end();
}

async function writeSlowly(
  raw: FastifyReply['raw'],
  body: Buffer,
  bytesPerSecond: number,
  gone: AbortSignal,
): Promise<void> {
  const size = Math.max(1, Math.floor((bytesPerSecond * DRIP_INTERVAL_MS) / 1000));
  for (let from = 0; from < body.length && !gone.aborted; from += size) {
    const piece = body.subarray(from, from + size);
    raw.write(piece);
    await systemTimers.sleep((1000 * piece.length) / bytesPerSecond, gone);
  }
}
