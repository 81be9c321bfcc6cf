import { once } from 'node:events';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import { requestContext } from '../http/request-context.ts';
import type { RequestLog } from '../http/request-log.ts';
import type { FaultMatch, Faults } from './faults.ts';
import type { FaultOptions, ReplacementFault } from './kinds.ts';
import type { OriginListener } from './origin-listener.ts';

/** The page of a captive portal. */
const CAPTIVE_PORTAL_PAGE =
  '<!DOCTYPE html>\n<title>Welcome</title>\n<p>Please accept our terms of use to continue.</p>\n';

/** Headers of every response, including a replaced one; they reveal nothing about the original response. */
const COMMON_HEADERS = new Set([
  ...['date', 'cache-control', 'pragma', 'x-content-type-options'],
  ...['vary', 'access-control-allow-origin', 'access-control-expose-headers'],
]);

/** The padding that is written at once. */
const PADDING = Buffer.alloc(65_536, ' ');

/** Milliseconds between two chunks of a slow body; more if its rate is below one byte in that time. */
const DRIP_INTERVAL_MS = 50;

/**
 * Applies faults to the requests of an origin, except those under `/_emulator/`. Must be attached after all
 * hooks that change responses.
 */
export function attachFaults(app: FastifyInstance, faults: Faults, listener: OriginListener, log: RequestLog): void {
  const pending = new WeakMap<FastifyRequest, FaultMatch>();

  app.addHook('preHandler', (request, reply, done) => {
    const context = requestContext(request);
    if (context.endpoint === null) return done();
    const grantType = context.form?.get('grant_type') ?? null;
    const match = faults.match({ endpoint: context.endpoint, client: context.client, grantType });
    if (match === null) return done();
    log.recordFault(request, match.id);
    const { fault } = match;
    if (fault.kind === 'reset_before') {
      listener.reset(request.raw.socket);
      reply.hijack();
    } else if (fault.kind === 'hang' && fault.commit !== true) {
      reply.hijack();
    } else if (fault.kind === 'delay' && fault.commit !== true) {
      void systemTimers.sleep(1000 * fault.seconds, connectionClosedSignal(reply.raw)).then(() => done());
    } else {
      pending.set(request, match);
      // onSend replaces the response; sending here only skips the handler.
      if ('commit' in fault && fault.commit !== true) reply.send('');
      else done();
    }
  });

  app.addHook('onSend', (request, reply, payload, done) => {
    const match = pending.get(request);
    if (match === undefined) return done();
    pending.delete(request);
    const { fault, id } = match;
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
      case 'change_members':
        return done(null, changeMembers(payload, fault.members));
      case 'wrong_date': {
        const date = Date.parse(String(reply.getHeader('date')));
        reply.header('date', new Date(date + 1000 * fault.offset).toUTCString());
        return done();
      }
      case 'delay':
        void systemTimers.sleep(1000 * fault.seconds, connectionClosedSignal(reply.raw)).then(() => done());
        return;
      // These faults lose the response or write it themselves: without done() Fastify writes nothing.
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
  const closed = new AbortController();
  raw.once('close', () => closed.abort());
  return closed.signal;
}

/** Replaces status and headers of the response. @returns the new body */
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

/** Replaces members in the text of a JSON object, or adds them. All texts stay as they are written. */
function changeMembers(payload: unknown, members: string): unknown {
  if (typeof payload !== 'string' || !/^\{.+\}$/su.test(payload)) return payload;
  const replaced = new Set(memberTexts(members).map(memberName));
  const kept = memberTexts(payload).filter((member) => !replaced.has(memberName(member)));
  return `{${[...kept, members.trim().slice(1, -1)].join(',')}}`;
}

/** The texts of the members of a JSON object. */
function memberTexts(object: string): string[] {
  const texts: string[] = [];
  let depth = 0;
  let start = object.indexOf('{') + 1;
  for (const { 0: token, index } of object.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/g)) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (depth > 1 || (depth === 1 && token !== ',')) continue;
    texts.push(object.slice(start, index));
    start = index + 1;
  }
  return texts.filter((text) => text.trim() !== '');
}

/** The name of a member; null if its text has none. */
function memberName(member: string): unknown {
  const name = /^\s*("(?:[^"\\]|\\.)*")/.exec(member)?.[1];
  return name === undefined ? null : JSON.parse(name);
}

/**
 * Writes a response without Fastify: truncated, slowly or padded.
 * @param closed aborted when the connection closes
 */
async function writeResponse(
  reply: FastifyReply,
  payload: unknown,
  fault: Extract<FaultOptions, { readonly kind: 'truncate' | 'slow_body' | 'oversize' }>,
  closed: AbortSignal,
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
  if (fault.kind === 'slow_body') await writeSlowly(raw, body, fault.bytesPerSecond, closed);
  else raw.write(body);
  for (let left = padding; left > 0 && !closed.aborted; left -= PADDING.length) {
    if (!raw.write(PADDING.subarray(0, left))) await once(raw, 'drain', { signal: closed }).catch(() => undefined);
  }
  raw.end();
}

async function writeSlowly(
  raw: FastifyReply['raw'],
  body: Buffer,
  bytesPerSecond: number,
  closed: AbortSignal,
): Promise<void> {
  const size = Math.max(1, Math.floor((bytesPerSecond * DRIP_INTERVAL_MS) / 1000));
  for (let from = 0; from < body.length && !closed.aborted; from += size) {
    const chunk = body.subarray(from, from + size);
    raw.write(chunk);
    await systemTimers.sleep((1000 * chunk.length) / bytesPerSecond, closed);
  }
}
