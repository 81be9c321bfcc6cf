import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { systemRandom } from '../../system/random.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { appendBounded } from '../bounded-collections.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { ClientRegistry } from '../settings/client-registry.ts';
import type { LoggedRequest } from './logged-request.ts';
import { hasRequestContext, mediaType, type RequestContext, requestContext } from './request-context.ts';

/** Requests kept. */
const MAX_REQUESTS = 10_000;

/** A logged request that may still be in progress. */
type LogEntry = { -readonly [Member in keyof LoggedRequest]: LoggedRequest[Member] };

/** The log of requests and responses, without those under `/_emulator/`. */
export class RequestLog {
  #entries: LogEntry[] = [];
  #lastNumber = 0;

  /** The newest requests, oldest first. @param since only requests with a higher number */
  values(since = 0): LoggedRequest[] {
    return this.#entries.filter(({ number }) => number > since).map((entry) => ({ ...entry }));
  }

  /** Removes all requests; numbering continues. */
  clear(): void {
    this.#entries = [];
  }

  /** Records the fault that was applied to a request, and the status that it set, if any. */
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
      const context = requestContext(request);
      if (context.endpoint === null) return done();
      this.#lastNumber += 1;
      const entry: LogEntry = {
        number: this.#lastNumber,
        time: new Date(portal.now()).toISOString(),
        endpoint: context.endpoint,
        client: context.client,
        method: context.method,
        url: loggedPath(context, masking),
        query: masking.maskForm(context.query),
        form: {},
        ...loggedMedia(request),
        authorization: context.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
        status: null,
        answer: {},
      };
      request.setDecorator('logged', entry);
      appendBounded(this.#entries, entry, MAX_REQUESTS);
      reply.raw.on('close', () => {
        if (!reply.raw.writableFinished) entry.status = null;
        portal.changes.emit({ event: 'request', data: { ...entry } });
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
        Object.assign(entry, {
          status: reply.statusCode,
          answer: { ...entry.answer, ...loggedResponse(reply, payload, masking) },
        });
      done();
    });
  }
}

/** The entry of a request; null for paths under `/_emulator/`. */
export function logEntry(request: FastifyRequest): LogEntry | null {
  return request.getDecorator<LogEntry | null>('logged');
}

/** Logs the message of the page that answers a request; of other pages nothing is logged. */
export function logMessage(request: FastifyRequest, message: string): void {
  const entry = logEntry(request);
  if (entry !== null) entry.answer = { message };
}

/** The logged part of a response: the location of a redirect, or its JSON; nothing of a page. */
function loggedResponse(reply: FastifyReply, payload: unknown, masking: SecretMasker): LoggedRequest['answer'] {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return { location: masking.maskUrl(location) };
  const json = String(reply.getHeader('content-type')).startsWith('application/json');
  return json && typeof payload === 'string' ? masking.maskJson(payload) : {};
}

function loggedMedia(request: FastifyRequest): Pick<LoggedRequest, 'media'> {
  const media = mediaType(request).slice(0, 100);
  return media === '' ? {} : { media };
}

/** The path, with an unknown client masked; of unknown paths only the beginning. */
function loggedPath({ pathClientId: id, sentUrl, route = '' }: RequestContext, masking: SecretMasker): string {
  if (id === undefined) return (sentUrl.split('?')[0] ?? '').slice(0, 100);
  return route.replace(':client_id', masking.maskClient(id));
}

type ResponseValue = string | number | boolean | null;

/** Prevents guessing a masked password by its hash. */
const SALT = systemRandom.token(16);

/** Limits of one logged value, and of one form, query or response. */
const MAX_VALUE_LENGTH = 4_000;
const MAX_MEMBERS = 30;

/** Parameters, and members of responses, that are not secret. All others are masked. */
const PUBLIC_PARAMETERS = new Set([
  'response_type',
  'grant_type',
  'token_type_hint',
  'scope',
  'access_type',
  'error',
  'code_challenge_method',
  'client_assertion_type',
  'subject_token_type',
  'actor_token_type',
  'requested_token_type',
  'prompt',
  'max_age',
]);
const PUBLIC_MEMBERS = new Set(['scope', 'token_type', 'user', 'error', 'error_description', 'message']);

/** The ends of the names of parameters and members that are URLs, which are logged with a masked query. A request_uri is a secret. */
const URL_MEMBER = /(?:_url|_endpoint|(?<!request)_uri|_uri_complete)$|^issuer$/;

/** Masks secrets for the log, except with the option `showSecrets`. */
class SecretMasker {
  readonly #clients: ClientRegistry;
  readonly #showSecrets: boolean;

  constructor(clients: ClientRegistry, showSecrets: boolean) {
    this.#clients = clients;
    this.#showSecrets = showSecrets;
  }

  /** A masked secret. */
  maskSecret(value: string): string {
    return this.#showSecrets ? value.slice(0, MAX_VALUE_LENGTH) : `#${sha256(SALT + value).slice(0, 8)}`;
  }

  /** A client ID; masked if it is unknown, because it may be a secret. */
  maskClient(id: string): string {
    return this.#clients.has(id) ? id : this.maskSecret(id);
  }

  /** A form or a query with masked secrets. */
  maskForm(form: ReadonlyMap<string, string> | null): Record<string, string> {
    const shown = (name: string, value: string) => {
      if (name === 'client_id') return this.maskClient(value);
      if (URL_MEMBER.test(name)) return this.maskUrl(value);
      return PUBLIC_PARAMETERS.has(name) ? value.slice(0, 200) : this.maskSecret(value);
    };
    return Object.fromEntries(
      [...(form ?? [])].slice(0, MAX_MEMBERS).map(([name, value]) => [name, shown(name, value)]),
    );
  }

  /** The members of a JSON object with masked secrets; nested values are left out. */
  maskJson(text: string): Record<string, ResponseValue> {
    const members = Object.entries(parseObject(text)).slice(0, MAX_MEMBERS);
    return Object.fromEntries(
      members.flatMap(([name, value]): [string, ResponseValue][] => {
        if (typeof value === 'string') return [[name, this.#maskMember(name, value)]];
        const isPlain = value === null || typeof value === 'number' || typeof value === 'boolean';
        return isPlain ? [[name, value]] : [];
      }),
    );
  }

  /** A URL as it was sent, without a user and a password, and with its query masked. */
  maskUrl(address: string): string {
    if (this.#showSecrets) return address.slice(0, MAX_VALUE_LENGTH);
    const [beforeQuery = '', parameters = ''] = address.slice(0, MAX_VALUE_LENGTH).split(/[?#]/);
    const masked = this.maskForm(new Map(new URLSearchParams(parameters)));
    const query = Object.entries(masked).map(([name, value]) => `${name}=${value}`);
    return `${beforeQuery.replace(/\/\/[^/]*@/, '//')}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  }

  #maskMember(name: string, value: string): string {
    if (URL_MEMBER.test(name)) return this.maskUrl(value);
    return PUBLIC_MEMBERS.has(name) ? value.slice(0, 500) : this.maskSecret(value);
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
