import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sha256 } from '../../system/compare.ts';
import { systemRandom } from '../../system/random.ts';
import { Recent } from '../memory/bounded.ts';
import type { Portal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import type { LoggedRequest } from './logged-request.ts';
import { type Received, received, wasReceived } from './received.ts';

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

type AnswerValue = string | number | boolean | null;

/** Keeps a masked password from being guessed by its hash. */
const SALT = systemRandom.token(16);

/** What is kept of one value, and of one form, query or answer. */
const MAX_VALUE_LENGTH = 4_000;
const MAX_MEMBERS = 30;

/** Parameters and members of answers that are nobody's secret. All others are masked. */
const PUBLIC_PARAMETERS = new Set(['response_type', 'grant_type', 'scope', 'access_type', 'error']);
const PUBLIC_MEMBERS = new Set(['scope', 'token_type', 'user', 'error', 'error_description', 'message']);

/** Shows what goes to and fro without the secrets in it, or with them where the emulator was told so. */
class Masking {
  readonly #clients: ReadonlyMap<string, Client>;
  readonly #showSecrets: boolean;

  constructor(clients: ReadonlyMap<string, Client>, showSecrets: boolean) {
    this.#clients = clients;
    this.#showSecrets = showSecrets;
  }

  /** A secret as it is shown. */
  secret(value: string): string {
    return this.#showSecrets ? value.slice(0, MAX_VALUE_LENGTH) : `#${sha256(SALT + value).slice(0, 8)}`;
  }

  /** The client in a path. */
  client(id: string): string {
    return this.#clients.has(id) ? id : this.secret(id);
  }

  /** A form or a query. */
  form(form: ReadonlyMap<string, string> | null): Record<string, string> {
    const shown = (name: string, value: string) => {
      if (name === 'client_id') return this.client(value);
      return PUBLIC_PARAMETERS.has(name) ? value.slice(0, 200) : this.secret(value);
    };
    return Object.fromEntries(
      [...(form ?? [])].slice(0, MAX_MEMBERS).map(([name, value]) => [name, shown(name, value)]),
    );
  }

  /** An answer that is a JSON object; what is in it below the first level is left out. */
  json(text: string): Record<string, AnswerValue> {
    const answer = object(text);
    const members = Object.entries(answer).slice(0, MAX_MEMBERS);
    return Object.fromEntries(
      members.flatMap(([name, value]): [string, AnswerValue][] => {
        if (typeof value === 'string') return [[name, this.#member(name, value)]];
        const plain = value === null || typeof value === 'number' || typeof value === 'boolean';
        return plain ? [[name, value]] : [];
      }),
    );
  }

  /** An address: origin and path as they are, the query masked. */
  address(address: string): string {
    if (!URL.canParse(address)) return this.secret(address);
    const url = new URL(address);
    const query = Object.entries(this.form(new Map(url.searchParams))).map(([name, value]) => `${name}=${value}`);
    return `${url.origin}${url.pathname}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  }

  #member(name: string, value: string): string {
    if (name.endsWith('_url')) return this.address(value);
    return PUBLIC_MEMBERS.has(name) ? value.slice(0, 200) : this.secret(value);
  }
}

function object(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
