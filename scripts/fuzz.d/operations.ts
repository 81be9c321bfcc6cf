// The endpoints and parameters in a program's OpenAPI document, which a run must reach.

/** An operation of the OpenAPI document, and how far it was reached. */
export interface CoveredOperation {
  /** For example `POST /sso/token`. */
  readonly name: string;
  /** Responses with a status below 400. */
  good: number;
  /** Parameters and members of bodies that no request has had yet. */
  readonly unsent: Set<string>;
}

/** The part of JSON Schema that the OpenAPI documents use. */
export interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** An operation as an OpenAPI document describes it. */
export interface OpenApiOperation {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: JsonSchema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
}

/** The part of an OpenAPI document that describes requests. */
export interface OpenApiDocument {
  readonly paths: Readonly<
    Record<string, { readonly servers?: readonly { readonly url: string }[] } & Record<string, OpenApiOperation>>
  >;
}

const VERBS = ['get', 'post', 'put', 'patch', 'delete'];

/** The operations of a running program. */
export class OperationCoverage {
  readonly all: readonly CoveredOperation[];
  readonly #paths: readonly {
    readonly method: string;
    readonly pattern: RegExp;
    readonly operation: CoveredOperation;
  }[];

  /** @param description its OpenAPI document */
  constructor(description: unknown) {
    const { paths } = description as OpenApiDocument;
    this.#paths = Object.entries(paths).flatMap(([path, item]) =>
      VERBS.flatMap((verb) => {
        const described = item[verb];
        if (described === undefined) return [];
        const method = verb.toUpperCase();
        const pattern = new RegExp(`^${path.replaceAll(/[.]/g, '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`);
        return {
          method,
          pattern,
          operation: { name: `${method} ${path}`, good: 0, unsent: new Set(taken(described)) },
        };
      }),
    );
    this.all = this.#paths.map(({ operation }) => operation);
  }

  /** Counts a response. @returns the name of the request's operation, or `no endpoint` */
  count(request: { readonly method: string; readonly path: string; readonly bytes: string }, status: number): string {
    const [path = ''] = request.path.split('?');
    const found = this.#paths.find(({ method, pattern }) => method === request.method && pattern.test(path))?.operation;
    if (found === undefined) return 'no endpoint';
    if (status < 400) found.good += 1;
    for (const name of found.unsent) if (request.bytes.includes(name)) found.unsent.delete(name);
    return found.name;
  }
}

function taken({ parameters = [], requestBody }: OpenApiOperation): string[] {
  const inBody = Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => members(schema));
  return [...parameters.filter((one) => one.in !== 'path').map(({ name }) => name), ...inBody];
}

function members({ properties = {}, oneOf = [] }: JsonSchema): string[] {
  return [...Object.keys(properties), ...oneOf.flatMap(members)];
}
