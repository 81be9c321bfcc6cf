import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { LoggedRequest } from '../http/logged-request.ts';
import { type Received, received, wasReceived } from '../http/received.ts';
import { Recent } from '../memory/bounded.ts';
import type { Portal } from '../portal.ts';
import { Masking } from './masking.ts';

/** Requests that are remembered. */
const MAX_REQUESTS = 10_000;

/** A request that may still be under way. */
type Entry = { -readonly [Member in keyof LoggedRequest]: LoggedRequest[Member] };

/** The log of what clients sent and were answered; requests under `/_emulator/` are not part of it. */
export class RequestLog {
  #entries = new Recent<Entry>(MAX_REQUESTS);
  #last = 0;

  /** The newest requests, the oldest first. @param since only those with a higher number */
  values(since = 0): LoggedRequest[] {
    return this.#entries
      .values()
      .filter(({ number }) => number > since)
      .map((entry) => ({ ...entry }));
  }

  /** Forgets all requests; the numbers go on. */
  clear(): void {
    this.#entries = new Recent(MAX_REQUESTS);
  }

  /** Says of a request which fault struck it, and which status it got by that, where that is another one. */
  struck(request: FastifyRequest, fault: string, status?: number): void {
    const entry = entryOf(request);
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
      const entry: Entry = {
        number: this.#last,
        time: new Date(portal.now()).toISOString(),
        endpoint: came.endpoint,
        client: came.client,
        method: came.method,
        url: path(came, masking),
        query: masking.form(came.query),
        form: {},
        authorization: came.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
        status: null,
        answer: {},
      };
      request.setDecorator('logged', entry);
      this.#entries.push(entry);
      reply.raw.on('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
        portal.changes.requested({ ...entry });
      });
      done();
    });
    app.addHook('preHandler', (request, _reply, done) => {
      const entry = entryOf(request);
      if (entry !== null) {
        const { client, form } = received(request);
        Object.assign(entry, { client, form: masking.form(form) });
      }
      done();
    });
    app.addHook('onSend', (request, reply, payload, done) => {
      const entry = wasReceived(request) ? entryOf(request) : null;
      if (entry !== null) Object.assign(entry, { status: reply.statusCode, answer: answer(reply, payload, masking) });
      done();
    });
  }
}

function entryOf(request: FastifyRequest): Entry | null {
  return request.getDecorator<Entry | null>('logged');
}

/** What of an answer is logged: where it sends a browser, or its JSON; nothing of a page. */
function answer(reply: FastifyReply, payload: unknown, masking: Masking): LoggedRequest['answer'] {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return { location: masking.address(location) };
  const json = String(reply.getHeader('content-type')).startsWith('application/json');
  return json && typeof payload === 'string' ? masking.json(payload) : {};
}

/** The path with an unknown client in it masked; of paths that are no endpoint's, the beginning. */
function path({ clientInPath: id, url, route = '' }: Received, masking: Masking): string {
  if (id === undefined) return (url.split('?')[0] ?? '').slice(0, 100);
  return route.replace(':client_id', masking.client(id));
}
