import { fastify } from 'fastify';

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

/** A response, from any HTTP client. */
type HttpResponse = Pick<Response, 'status' | 'text'> & { readonly headers: Pick<Headers, 'get' | 'has'> };

/** Checks real responses against the OpenAPI document, and records which of the described ones occurred. */
export class OpenApiConformance {
  readonly #document: Document;
  /** Fastify's own validator, with all conversions turned off. */
  readonly #validator = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  readonly #seen = new Set<string>();

  /** @param document an OpenAPI document */
  constructor(document: object) {
    this.#document = document as Document;
    this.#validator.post('/', async (request) => {
      const { schema, body } = request.body as { schema: Record<string, unknown>; body: unknown };
      return [request.compileValidationSchema(schema)(body)];
    });
  }

  /** How a response differs from its description; empty if it does not. */
  async differences(path: string, method: string, response: HttpResponse): Promise<string> {
    const what = `${method} ${path} ${response.status}`;
    const described = this.#document.paths[path]?.[method]?.responses?.[response.status];
    if (described === undefined) return `${what} is not described`;
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    const body = await response.text();
    const [[describedType, media] = ['', {} as Media]] = Object.entries(described.content ?? {});
    if (type !== describedType || (describedType === '') !== (body === ''))
      return `${what}: found ${type || 'nothing'}: ${body}`;
    if (media.schema !== undefined && !(await this.#isValid(media.schema, body))) return `${what}: found ${body}`;
    this.#seen.add(what);
    for (const name of Object.keys(described.headers ?? {})) {
      if (response.headers.has(name)) this.#seen.add(`${what} ${name}`);
    }
    return '';
  }

  /** What is described and never occurred: responses by operation and status, and optional headers. */
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

  async #isValid(schema: Record<string, unknown>, body: string): Promise<boolean> {
    const payload = { schema, body: JSON.parse(body) as unknown };
    const result = await this.#validator.inject({ method: 'POST', url: '/', payload });
    return result.body === '[true]';
  }
}
