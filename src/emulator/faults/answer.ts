import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import type { ReplacementFault, ResponseFault } from './options.ts';

/** What a captive portal says. */
const WEB_PAGE = '<!DOCTYPE html>\n<title>Welcome</title>\n<p>Please accept our terms of use to go on.</p>\n';

/** Headers that every answer has, a faulty one too; they say nothing of the right answer. */
const KEPT = new Set(['date', 'cache-control', 'pragma', 'x-content-type-options']);

/** Bytes of padding written at once. */
const PIECE = Buffer.alloc(65_536, ' ');

/** Milliseconds between two pieces of a slow body, unless it is one of less than a byte in that time. */
const BEAT = 50;

/** Puts status and headers of another answer in place of the right ones. @returns its body */
export function replaceAnswer(reply: FastifyReply, fault: ReplacementFault): string {
  for (const name of Object.keys(reply.getHeaders())) if (!KEPT.has(name)) reply.removeHeader(name);
  reply.code(fault.kind === 'not_json' ? 200 : (fault.status ?? 302));
  if (fault.kind === 'redirect') {
    reply.header('location', fault.location);
    return '';
  }
  reply.header('content-type', 'application/json');
  if (fault.kind === 'not_json') return WEB_PAGE;
  for (const [name, value] of Object.entries(fault.headers ?? {})) reply.header(name, value);
  return fault.body ?? '';
}

/**
 * Writes an answer past Fastify, cut, slowly or with too much behind it.
 * @param gone aborted when the connection is
 */
export async function writeAnswer(
  reply: FastifyReply,
  payload: unknown,
  fault: Extract<ResponseFault, { kind: 'truncate' | 'slow_body' | 'oversize' }>,
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
  if (fault.kind === 'slow_body') await drip(raw, body, fault.bytesPerSecond, gone);
  else raw.write(body);
  for (let left = padding; left > 0 && !gone.aborted; left -= PIECE.length) {
    if (!raw.write(PIECE.subarray(0, left))) await once(raw, 'drain', { signal: gone }).catch(() => undefined);
  }
  raw.end();
}

async function drip(raw: FastifyReply['raw'], body: Buffer, bytesPerSecond: number, gone: AbortSignal): Promise<void> {
  const size = Math.max(1, Math.floor((bytesPerSecond * BEAT) / 1000));
  for (let from = 0; from < body.length && !gone.aborted; from += size) {
    const piece = body.subarray(from, from + size);
    raw.write(piece);
    await systemTimers.sleep((1000 * piece.length) / bytesPerSecond, gone);
  }
}
