import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { systemRandom } from '../../system/random.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { RingBuffer } from '../memory/bounded-collections.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import type { LoggedRequest } from './logged-request.ts';
import { hasRequestContext, type RequestContext, requestContext } from './request-context.ts';

/** Requests that are remembered. */
const MAX_REQUESTS = 10_000;

/** A request that may still be under way. */
type LogEntry = { -readonly [Member in keyof LoggedRequest]: LoggedRequest[Member] };

/** The log of what clients sent and were answered; requests under `/_emulator/` are not part of it. */
export class RequestLog {
  #entries = new RingBuffer<LogEntry>(MAX_REQUESTS);
  #lastNumber = 0;

  /** The newest requests, the oldest first. @param since only those with a higher number */
  values(since = 0): LoggedRequest[] {
    return this.#entries
      .values()
      .filter(({ number }) => number > since)
      .map((entry) => ({ ...entry }));
  }

  /** Forgets all requests; the numbers go on. */
  clear(): void {
    this.#entries = new RingBuffer(MAX_REQUESTS);
  }

  /** Says of a request which fault struck it, and which status it got by that, where that is another one. */
  recordFault(request: FastifyRequest, fault: string, status?: number): void {
    const entry = logEntry(request);
    if (entry === null) return;
    entry.fault = fault;
    if (status !== undefined) entry.status = status;
  }

  /** Logs every request of an origin. */
  attach(app: FastifyInstance, portal: EmulatedPortal): void {
    const { clients, showSecrets } = portal.settings;
    const masking = new SecretMasker(clients, showSecrets);
    app.decorateRequest('logged', null);
    app.addHook('onRequest', (request, reply, done) => {
      const came = requestContext(request);
      if (came.endpoint === null) return done();
      this.#lastNumber += 1;
      const entry: LogEntry = {
        number: this.#lastNumber,
        time: new Date(portal.now()).toISOString(),
        endpoint: came.endpoint,
        client: came.client,
        method: came.method,
        url: loggedPath(came, masking),
        query: masking.maskForm(came.query),
        form: {},
        authorization: came.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
        status: null,
        answer: {},
      };
      request.setDecorator('logged', entry);
      this.#entries.push(entry);
      reply.raw.on('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
        portal.changes.emitRequest({ ...entry });
      });
      done();
    });
    app.addHook('preHandler', (request, _reply, done) => {
      const entry = logEntry(request);
      if (entry !== null) {
        const { client, form } = requestContext(request);
        Object.assign(entry, { client, form: masking.maskForm(form) });
      }
      done();
    });
    app.addHook('onSend', (request, reply, payload, done) => {
      const entry = hasRequestContext(request) ? logEntry(request) : null;
      if (entry !== null)
        Object.assign(entry, { status: reply.statusCode, answer: loggedAnswer(reply, payload, masking) });
      done();
    });
  }
}

function logEntry(request: FastifyRequest): LogEntry | null {
  return request.getDecorator<LogEntry | null>('logged');
}

/** What of an answer is logged: where it sends a browser, or its JSON; nothing of a page. */
function loggedAnswer(reply: FastifyReply, payload: unknown, masking: SecretMasker): LoggedRequest['answer'] {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return { location: masking.maskUrl(location) };
  const json = String(reply.getHeader('content-type')).startsWith('application/json');
  return json && typeof payload === 'string' ? masking.maskJson(payload) : {};
}

/** The path with an unknown client in it masked; of paths that are no endpoint's, the beginning. */
function loggedPath({ pathClientId: id, url, route = '' }: RequestContext, masking: SecretMasker): string {
  if (id === undefined) return (url.split('?')[0] ?? '').slice(0, 100);
  return route.replace(':client_id', masking.maskClient(id));
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
class SecretMasker {
  readonly #clients: ReadonlyMap<string, Client>;
  readonly #showSecrets: boolean;

  constructor(clients: ReadonlyMap<string, Client>, showSecrets: boolean) {
    this.#clients = clients;
    this.#showSecrets = showSecrets;
  }

  /** A secret as it is shown. */
  maskSecret(value: string): string {
    return this.#showSecrets ? value.slice(0, MAX_VALUE_LENGTH) : `#${sha256(SALT + value).slice(0, 8)}`;
  }

  /** The client in a path. */
  maskClient(id: string): string {
    return this.#clients.has(id) ? id : this.maskSecret(id);
  }

  /** A form or a query. */
  maskForm(form: ReadonlyMap<string, string> | null): Record<string, string> {
    const shown = (name: string, value: string) => {
      if (name === 'client_id') return this.maskClient(value);
      return PUBLIC_PARAMETERS.has(name) ? value.slice(0, 200) : this.maskSecret(value);
    };
    return Object.fromEntries(
      [...(form ?? [])].slice(0, MAX_MEMBERS).map(([name, value]) => [name, shown(name, value)]),
    );
  }

  /** An answer that is a JSON object; what is in it below the first level is left out. */
  maskJson(text: string): Record<string, AnswerValue> {
    const answer = parseObject(text);
    const members = Object.entries(answer).slice(0, MAX_MEMBERS);
    return Object.fromEntries(
      members.flatMap(([name, value]): [string, AnswerValue][] => {
        if (typeof value === 'string') return [[name, this.#maskMember(name, value)]];
        const plain = value === null || typeof value === 'number' || typeof value === 'boolean';
        return plain ? [[name, value]] : [];
      }),
    );
  }

  /** An address: origin and path as they are, the query masked. */
  maskUrl(address: string): string {
    if (!URL.canParse(address)) return this.maskSecret(address);
    const url = new URL(address);
    const query = Object.entries(this.maskForm(new Map(url.searchParams))).map(([name, value]) => `${name}=${value}`);
    return `${url.origin}${url.pathname}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  }

  #maskMember(name: string, value: string): string {
    if (name.endsWith('_url')) return this.maskUrl(value);
    return PUBLIC_MEMBERS.has(name) ? value.slice(0, 200) : this.maskSecret(value);
  }
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
