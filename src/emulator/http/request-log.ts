import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Recent } from '../bounded.ts';
import type { Portal } from '../portal.ts';
import { type Answer, LogEntry } from './log-entry.ts';
import type { LoggedRequest } from './logged-request.ts';
import { Masking } from './masking.ts';
import { received, wasReceived } from './received.ts';

/** Requests that are remembered. */
const REMEMBERED = 10_000;

/** The log of what clients sent and were answered; requests under `/_emulator/` are not part of it. */
export class RequestLog {
  #entries = new Recent<LogEntry>(REMEMBERED);
  #last = 0;

  /** The newest requests, the oldest first. @param since only those with a higher number */
  values(since = 0): LoggedRequest[] {
    return this.#entries
      .values()
      .filter((entry) => entry.number > since)
      .map((entry) => entry.view());
  }

  /** Forgets all requests; the numbers go on. */
  clear(): void {
    this.#entries = new Recent(REMEMBERED);
  }

  /** Says of a request which fault struck it, and which status it got by that, where that is another one. */
  struck(request: FastifyRequest, fault: string, status?: number): void {
    const entry = request.getDecorator<LogEntry | null>('logged');
    if (entry === null) return;
    entry.fault = fault;
    if (status !== undefined) entry.status = status;
  }

  /** Logs every request of an origin. */
  attach(app: FastifyInstance, portal: Portal): void {
    const { clients, showSecrets } = portal.settings;
    const masking = new Masking(clients, showSecrets);
    app.decorateRequest('logged', null);
    app.addHook('onRequest', (request, reply, done) => {
      const came = received(request);
      if (came.endpoint === null) return done();
      this.#last += 1;
      const entry = new LogEntry(this.#last, portal.now(), came.endpoint, came, masking);
      request.setDecorator('logged', entry);
      this.#entries.push(entry);
      reply.raw.on('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
        entry.close();
        portal.changes.requested(entry);
      });
      done();
    });
    app.addHook('onSend', (request, reply, payload, done) => {
      const entry = wasReceived(request) ? request.getDecorator<LogEntry | null>('logged') : null;
      entry?.answered(reply.statusCode, answer(reply, payload));
      done();
    });
  }
}

/** What of an answer is logged: where it sends a browser, or its JSON. */
function answer(reply: FastifyReply, payload: unknown): Answer {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return { location };
  const json = String(reply.getHeader('content-type')).startsWith('application/json');
  return { json: json && typeof payload === 'string' ? payload : '' };
}
