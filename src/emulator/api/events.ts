import type { FastifyReply, FastifyRequest } from 'fastify';
import * as v from 'valibot';
import type { EmulatedPortal } from '../portal.ts';
import type { ApiOperation, EventTimers } from './operation.ts';

const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** Milliseconds between heartbeats, so that neither side considers an idle connection dead. */
const HEARTBEAT_INTERVAL_MS = 15_000;

/** Bytes buffered for a listener; one that reads more slowly is disconnected. */
const MAX_BACKLOG_BYTES = 1_000_000;

/** The stream of events. */
export const eventsOperation: ApiOperation = {
  method: 'get',
  path: '/_emulator/events',
  id: 'followEvents',
  summary: 'Follow events: `request` with an entry of the log, `change` with the name of what changed',
  responses: {
    200: { description: 'Until either side closes the connection', body: 'text/event-stream' },
    429: { description: 'Too many listeners', body: v.strictObject({ error: v.literal('too_many_listeners') }) },
  },
  handle: ({ portal, timers }, request, reply) => sendEvents(portal, timers, request, reply),
};

/**
 * Sends server-sent events (HTML, 9.2) until either side closes.
 * - `request` (`id` is its number): a `LoggedRequest`, after its response was sent or lost.
 * - `change` `{"what": "settings" | "faults" | "clock" | "logins" | "devices" | "grants" | "requests"}`: read it again.
 */
function sendEvents(
  portal: Pick<EmulatedPortal, 'changes' | 'now'>,
  timers: EventTimers,
  request: FastifyRequest,
  reply: FastifyReply,
): unknown {
  if (request.method === 'HEAD') {
    reply.type(EVENT_STREAM);
    return undefined;
  }
  const { raw } = reply;
  const unsubscribe = portal.changes.subscribe(({ event, data }) => {
    if (raw.destroyed) return;
    const id = 'number' in data ? `id: ${data.number}\n` : '';
    raw.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
    if (raw.writableLength > MAX_BACKLOG_BYTES) raw.destroy();
  });
  if (unsubscribe === null) {
    reply.code(429);
    return { error: 'too_many_listeners' };
  }
  reply.hijack();
  raw.writeHead(200, {
    'content-type': EVENT_STREAM,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    date: new Date(portal.now()).toUTCString(),
  });
  raw.write(': the emulator’s events\n\n');
  let cancel = scheduleHeartbeat();
  function scheduleHeartbeat() {
    return timers.after(HEARTBEAT_INTERVAL_MS, () => {
      raw.write(': alive\n\n');
      cancel = scheduleHeartbeat();
    });
  }
  raw.once('close', () => {
    cancel();
    unsubscribe();
  });
  return undefined;
}
