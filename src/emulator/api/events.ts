import type { FastifyInstance } from 'fastify';
import type { systemTimers } from '../../system/clock.ts';
import { serve } from '../http/routes.ts';
import type { Portal } from '../portal.ts';

/** Runs something later; the emulator needs no more of the timers. */
export type EventTimers = Pick<typeof systemTimers, 'after'>;

const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** Milliseconds between signs of life, so that neither side takes a quiet connection for a dead one. */
const HEARTBEAT = 15_000;

/** Bytes that wait for a listener; one that reads more slowly than this is cut off. */
const BACKLOG = 1_000_000;

/**
 * `GET /_emulator/events`: what happens in the emulator, as server-sent events (HTML, 9.2), until either side closes.
 * - `request` (`id` is its number): a `LoggedRequest`, once its answer has gone out or was lost.
 * - `change` `{"what": "settings" | "faults" | "clock" | "logins" | "grants" | "requests"}`: look again.
 *
 * 429 where there are too many listeners.
 */
export function serveEvents(app: FastifyInstance, portal: Pick<Portal, 'changes' | 'now'>, timers: EventTimers): void {
  serve(app, '/_emulator/events', null, {
    async GET(request, reply) {
      if (request.method === 'HEAD') return reply.type(EVENT_STREAM).send();
      const { raw } = reply;
      const end = portal.changes.listen(({ event, data }) => {
        if (raw.destroyed) return;
        const id = 'number' in data ? `id: ${data.number}\n` : '';
        raw.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
        if (raw.writableLength > BACKLOG) raw.destroy();
      });
      if (end === null) return reply.code(429).send({ error: 'too_many_listeners' });
      reply.hijack();
      raw.writeHead(200, {
        'content-type': EVENT_STREAM,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        date: new Date(portal.now()).toUTCString(),
      });
      raw.write(': the emulator’s events\n\n');
      let cancel = beat();
      function beat() {
        return timers.after(HEARTBEAT, () => {
          raw.write(': alive\n\n');
          cancel = beat();
        });
      }
      raw.once('close', () => {
        cancel();
        end();
      });
      return reply;
    },
  });
}
