import diagnostics from 'node:diagnostics_channel';
import { type FastifyInstance, fastify } from 'fastify';

interface Media {
  readonly schema?: Record<string, unknown>;
}

interface Described {
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses?: Readonly<Record<string, Described>> }>>>
  >;
}

/** An answer, whichever client got it. */
type Answer = Pick<Response, 'status' | 'text'> & { readonly headers: Pick<Headers, 'get' | 'has'> };

/** Holds real answers to the OpenAPI document, and remembers which of those that it describes there were. */
export class OpenApiConformance {
  readonly #document: Document;
  /** Fastify's own validator, told not to bend what it is given. */
  readonly #validator = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  readonly #seen = new Set<string>();

  /** @param document as OpenAPI has it */
  constructor(document: object) {
    this.#document = document as Document;
    this.#validator.post('/', async (request) => {
      const { schema, body } = request.body as { schema: Record<string, unknown>; body: unknown };
      return [request.compileValidationSchema(schema)(body)];
    });
  }

  /** How an answer differs from what is described for the operation; empty where it does not. */
  async differences(path: string, method: string, answer: Answer): Promise<string> {
    const what = `${method} ${path} ${answer.status}`;
    const described = this.#document.paths[path]?.[method]?.responses?.[answer.status];
    if (described === undefined) return `${what} is not described`;
    const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
    const body = await answer.text();
    const [[wanted, media] = ['', {} as Media]] = Object.entries(described.content ?? {});
    if (type !== wanted || (wanted === '') !== (body === '')) return `${what}: found ${type || 'nothing'}: ${body}`;
    if (media.schema !== undefined && !(await this.#fits(media.schema, body))) return `${what}: found ${body}`;
    this.#seen.add(what);
    for (const name of Object.keys(described.headers ?? {})) {
      if (answer.headers.has(name)) this.#seen.add(`${what} ${name}`);
    }
    return '';
  }

  /** What is described and was never seen: answers by operation and status, and headers that they have now and then. */
  unseen(): string[] {
    return Object.entries(this.#document.paths)
      .flatMap(([path, item]) =>
        Object.entries(item).flatMap(([method, { responses = {} }]) =>
          Object.entries(responses).flatMap(([status, { headers = {} }]) => [
            `${method} ${path} ${status}`,
            ...Object.keys(headers).map((name) => `${method} ${path} ${status} ${name}`),
          ]),
        ),
      )
      .filter((what) => !this.#seen.has(what));
  }

  async #fits(schema: Record<string, unknown>, body: string): Promise<boolean> {
    const payload = { schema, body: JSON.parse(body) as unknown };
    const judged = await this.#validator.inject({ method: 'POST', url: '/', payload });
    return judged.body === '[true]';
  }
}

/** What `start` gives, and the paths of the routes, as OpenAPI writes them, that each server got which it made, in order. */
export async function recordRoutes<Started>(
  start: () => Promise<Started>,
): Promise<{ readonly started: Started; readonly routes: readonly ReadonlySet<string>[] }> {
  const routes: Set<string>[] = [];
  const watch = (message: unknown) => {
    const { fastify: app } = message as { fastify: FastifyInstance };
    const own = new Set<string>();
    routes.push(own);
    app.addHook('onRoute', ({ url, config }) => {
      if (config?.forPeople !== true) own.add(url.replaceAll(/:(\w+)/g, '{$1}'));
    });
  };
  diagnostics.subscribe('fastify.initialization', watch);
  const started = await start();
  diagnostics.unsubscribe('fastify.initialization', watch);
  return { started, routes };
}
