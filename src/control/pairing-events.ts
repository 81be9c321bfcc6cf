import { once } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Administration } from '../core/administration.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { PairingReport } from '../core/pairings/pairing-report.ts';
import { toWire } from './administration.ts';
import { followRoute } from './routes.ts';

/** Serves {@link followRoute}: a pairing's reports, until it has ended, the client has gone or the server closes. */
export function servePairingEvents(app: FastifyInstance, administration: Administration, log: Log): void {
  const closing = new AbortController();
  const streams = new Set<Readable>();

  app.get<{ Params: { id: string } }>(followRoute.path, async (request, reply) => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing.signal]);
    const reports = administration.followPairing(request.params.id, signal)[Symbol.asyncIterator]();
    // The first report comes before the head of the answer, so that an unknown pairing can still be a 404.
    const first = await reports.next();
    const stream = Readable.from(lines(first, reports, signal, log));
    streams.add(stream);
    stream.once('close', () => {
      streams.delete(stream);
      void reports.return?.();
    });
    return reply.type('application/x-ndjson').send(stream);
  });

  app.addHook('preClose', async () => {
    closing.abort();
    await Promise.all([...streams].map((stream) => once(stream, 'close')));
  });
}

async function* lines(
  first: IteratorResult<PairingReport>,
  reports: AsyncIterator<PairingReport>,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<string> {
  try {
    for (let next = first; next.done !== true; next = await reports.next())
      yield `${JSON.stringify(toWire(next.value))}\n`;
  } catch (error) {
    if (signal.aborted) return;
    log.error('pairing_events_failed', { problem: messageOf(error) });
    throw error;
  }
}
