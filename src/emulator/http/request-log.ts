import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Recent } from '../bounded.ts';
import type { Portal } from '../portal.ts';
import { endpointOf } from './endpoint.ts';
import type { LoggedRequest } from './logged-request.ts';
import { Masking } from './masking.ts';
import { clientInPath, clientOf, formParameters, parameters, rawQuery } from './request-form.ts';

/** Requests that are remembered. */
const REMEMBERED = 10_000;

/** The log of what clients sent and were answered; requests under `/_emulator/` are not part of it. */
export class RequestLog {
  #entries = new Recent<LoggedRequest>(REMEMBERED);
  #last = 0;
  readonly #open = new WeakMap<FastifyRequest, LoggedRequest>();

  /** The newest requests, the oldest first. @param since only those with a higher number */
  values(since = 0): LoggedRequest[] {
    return this.#entries
      .values()
      .filter((entry) => entry.number > since)
      .map((entry) => ({ ...entry }));
  }

  /** Forgets all requests; the numbers go on. */
  clear(): void {
    this.#entries = new Recent(REMEMBERED);
  }

  /** Says of a request which fault struck it, and which status it got by that, where that is another one. */
  struck(request: FastifyRequest, fault: string, status?: number): void {
    const entry = this.#open.get(request);
    if (entry === undefined) return;
    entry.fault = fault;
    if (status !== undefined) entry.status = status;
  }

  /** Logs every request of an origin. */
  attach(app: FastifyInstance, portal: Portal): void {
    const { clients, showSecrets } = portal.settings;
    const masking = new Masking(clients, showSecrets);
    const open = this.#open;
    app.addHook('onRequest', async (request, reply) => {
      const endpoint = endpointOf(request);
      if (endpoint === null) return;
      this.#last += 1;
      const entry: LoggedRequest = {
        number: this.#last,
        time: new Date(portal.now()).toISOString(),
        endpoint,
        client: clientOf(request, clients),
        method: request.method,
        url: path(request, masking),
        query: masking.form(parameters(rawQuery(request))),
        form: {},
        authorization: request.headers.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
        status: null,
        answer: {},
      };
      open.set(request, entry);
      this.#entries.push(entry);
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
        portal.changes.requested({ ...entry });
      });
    });
    app.addHook('preHandler', async (request) => {
      const entry = open.get(request);
      if (entry === undefined) return;
      entry.client = clientOf(request, clients);
      entry.form = masking.form(formParameters(request));
    });
    app.addHook('onSend', async (request, reply, payload) => {
      const entry = open.get(request);
      if (entry === undefined) return;
      entry.status = reply.statusCode;
      entry.answer = answer(reply, payload, masking);
    });
  }
}

/** The path with an unknown client in it masked; of paths that are no endpoint's, the beginning. */
function path(request: FastifyRequest, masking: Masking): string {
  const id = clientInPath(request);
  if (id === undefined) return (request.url.split('?')[0] ?? '').slice(0, 100);
  return (request.routeOptions.url ?? '').replace(':client_id', masking.client(id));
}

function answer(reply: FastifyReply, payload: unknown, masking: Masking): LoggedRequest['answer'] {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return { location: masking.address(location) };
  const json = String(reply.getHeader('content-type')).startsWith('application/json');
  return json && typeof payload === 'string' ? masking.json(payload) : {};
}
