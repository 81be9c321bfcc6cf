import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sha256 } from '../../system/compare.ts';
import { systemRandom } from '../../system/random.ts';
import { Recent } from '../bounded.ts';
import type { Client } from '../client.ts';
import type { Portal } from '../portal.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { clientInPath, clientOf, formParameters, parameters, rawQuery } from './request-form.ts';

/** One request and its answer. Secrets show as `#` and eight characters of a salted hash: equal ones look equal. */
export interface LoggedRequest {
  /** RFC 3339, UTC, by the emulator's clock. */
  readonly time: string;
  readonly endpoint: Endpoint;
  /** The registered client named in the request, authenticated or not. */
  client: string | null;
  readonly method: string;
  /** The path; what came in the query is under `query`. */
  readonly url: string;
  readonly query: Readonly<Record<string, string>>;
  /** The form in the body. */
  form: Readonly<Record<string, string>>;
  /** The scheme of the Authorization header in lower case, or null. */
  readonly authorization: string | null;
  /** The answer's status, or null where it was not (yet) given or did not arrive whole. */
  status: number | null;
}

/** Keeps a masked password from being guessed by its hash. */
const SALT = systemRandom.token(16);

/** Requests that are remembered. */
const REMEMBERED = 10_000;

/** Parameters that are nobody's secret. All others are masked. */
const PUBLIC = new Set(['response_type', 'grant_type', 'scope', 'access_type', 'error']);

/** The log of what clients sent and were answered; requests under `/_emulator/` are not part of it. */
export class RequestLog {
  readonly #entries = new Recent<LoggedRequest>(REMEMBERED);

  /** The newest requests, the oldest first. */
  values(): LoggedRequest[] {
    return this.#entries.values().map((entry) => ({ ...entry }));
  }

  /** Logs every request of an origin. */
  attach(app: FastifyInstance, portal: Portal): void {
    const clients = portal.settings.clients;
    const open = new WeakMap<FastifyRequest, LoggedRequest>();
    app.addHook('onRequest', async (request, reply) => {
      const endpoint = endpointOf(request);
      if (endpoint === null) return;
      const entry: LoggedRequest = {
        time: new Date(portal.now()).toISOString(),
        endpoint,
        client: clientOf(request, clients),
        method: request.method,
        url: path(request, clients),
        query: masked(parameters(rawQuery(request)), clients),
        form: {},
        authorization: request.headers.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
        status: null,
      };
      open.set(request, entry);
      this.#entries.push(entry);
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
      });
    });
    app.addHook('preHandler', async (request) => {
      const entry = open.get(request);
      if (entry === undefined) return;
      entry.client = clientOf(request, clients);
      entry.form = masked(formParameters(request), clients);
    });
    app.addHook('onSend', async (request, reply) => {
      const entry = open.get(request);
      if (entry !== undefined) entry.status = reply.statusCode;
    });
  }
}

/** The path with an unknown client in it masked; of paths that are no endpoint's, the beginning. */
function path(request: FastifyRequest, clients: ReadonlyMap<string, Client>): string {
  const id = clientInPath(request);
  if (id === undefined) return (request.url.split('?')[0] ?? '').slice(0, 100);
  return (request.routeOptions.url ?? '').replace(':client_id', clients.has(id) ? id : mask(id));
}

function masked(form: ReadonlyMap<string, string> | null, clients: ReadonlyMap<string, Client>) {
  const shown = (name: string, value: string) =>
    PUBLIC.has(name) || (name === 'client_id' && clients.has(value)) ? value.slice(0, 200) : mask(value);
  return Object.fromEntries([...(form ?? [])].slice(0, 30).map(([name, value]) => [name, shown(name, value)]));
}

function mask(value: string): string {
  return `#${sha256(SALT + value).slice(0, 8)}`;
}
