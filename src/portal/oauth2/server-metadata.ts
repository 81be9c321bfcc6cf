import type { AuthorizationServer } from 'oauth4webapi';
import * as v from 'valibot';
import { messageOf } from '../../core/failure.ts';
import type { Unreachable } from '../../core/portals/portal.ts';
import type { MovedEndpoint } from '../../core/portals/portal-status.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import type { PooledHttpClient } from '../http.ts';
import { unreachable } from '../responses.ts';
import { parseBody } from '../token-response.ts';
import type { Endpoints, OAuth2Settings } from './settings.ts';

/** Keeps the metadata of a portal for the next start. */
export interface MetadataCache {
  /** The document that was saved last; null if there is none. @throws Failure as `Store` */
  load(): Promise<string | null>;
  /** Never rejects: without a cache the next start only asks again. */
  save(document: string): Promise<void>;
}

/** What the hub knows about an authorization server. */
type ServerMetadata =
  | { readonly kind: 'server'; readonly server: AuthorizationServer }
  | { readonly kind: 'unavailable'; readonly problem: Unavailable };

/** How long a fetched document is used before it is fetched again, in ms: endpoints change seldom. */
const MAX_AGE = 86_400_000;
/** After a failure the document is not fetched again for this long, in ms. */
const RETRY_INTERVAL = 5000;

/** The methods of client authentication between which the hub chooses; without the member it is Basic. */
const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

const address = v.pipe(v.string(), v.maxLength(2048));
/** What the hub uses of the document (RFC 8414, 2). The rest may be of any size and depth, and is not kept. */
const members = v.object({
  issuer: address,
  authorization_endpoint: v.exactOptional(address),
  token_endpoint: v.exactOptional(address),
  device_authorization_endpoint: v.exactOptional(address),
  revocation_endpoint: v.exactOptional(address),
  token_endpoint_auth_methods_supported: v.exactOptional(
    v.fallback(
      v.pipe(
        v.array(v.unknown()),
        v.transform((offered) => AUTH_METHODS.filter((method) => offered.includes(method))),
      ),
      ['client_secret_basic'],
    ),
  ),
  authorization_response_iss_parameter_supported: v.exactOptional(v.fallback(v.boolean(), false)),
});
/** A member that is null counts as omitted. */
const documentSchema = v.pipe(
  v.record(v.string(), v.unknown()),
  v.transform((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))),
  members,
);
/** The metadata of an authorization server, as far as the hub uses it. */
type Document = v.InferOutput<typeof documentSchema>;

const UNREADABLE = 'discovery: the saved metadata can not be read at the moment';

/** The endpoints by their names in the document, to which the hub sends secrets or people. */
const ENDPOINT_NAMES = {
  authorization: 'authorization_endpoint',
  token: 'token_endpoint',
  deviceAuthorization: 'device_authorization_endpoint',
  revocation: 'revocation_endpoint',
} as const;

/**
 * The metadata of one authorization server: discovered from its issuer (RFC 8414, OpenID Connect Discovery), kept for
 * the next start, with the configured endpoints in place of those of the document. Only an https origin, or the
 * issuer's own, may be named there: the hub sends its secrets to these endpoints. A later document that moves one of them
 * to another origin is not used until a person has written the endpoint into the configuration: whoever can change a
 * document at the issuer would get every refresh token otherwise.
 */
export class MetadataSource {
  readonly #settings: Pick<OAuth2Settings, 'issuer' | 'endpoints'>;
  readonly #http: PooledHttpClient;
  readonly #cache: MetadataCache;
  readonly #now: () => number;
  #document: Document | null = null;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failure: Unavailable | null = null;
  #fetching: Promise<void> | null = null;
  #moved: MovedEndpoint | null = null;

  /** @param now the boot clock in ms */
  constructor(
    settings: Pick<OAuth2Settings, 'issuer' | 'endpoints'>,
    http: PooledHttpClient,
    cache: MetadataCache,
    now: () => number,
  ) {
    this.#settings = settings;
    this.#http = http;
    this.#cache = cache;
    this.#now = now;
  }

  /** Whether {@link endpoints} are all, because there is a document, or needs to be none. */
  get isKnown(): boolean {
    return this.#document !== null || this.#settings.issuer === null;
  }

  /** The endpoints that are known now, without asking the server. */
  get endpoints(): Endpoints {
    return endpointsOf(this.#server(this.#document ?? {}));
  }

  /** The endpoint that the newest document moves, so that the one before it stays in use; null if it moves none. */
  get moved(): MovedEndpoint | null {
    return this.#moved;
  }

  /** Waits for the first document; later ones are fetched in the background. */
  async get(): Promise<ServerMetadata> {
    const { issuer } = this.#settings;
    if (issuer === null) return { kind: 'server', server: this.#server({}) };
    if (this.#document === null && !(await this.#loadSaved(issuer)))
      return { kind: 'unavailable', problem: unavailable(UNREADABLE) };
    if (this.#now() - this.#fetchedAt >= MAX_AGE && this.#now() - this.#failedAt >= RETRY_INTERVAL) {
      this.#fetching ??= this.#fetch(issuer).finally(() => {
        this.#fetching = null;
      });
    }
    if (this.#document === null) await this.#fetching;
    if (this.#document !== null) return { kind: 'server', server: this.#server(this.#document) };
    return { kind: 'unavailable', problem: this.#failure ?? unavailable('its metadata was not fetched yet') };
  }

  /** Fetches the document now, whatever is known. @returns why it can't be used; null if it can */
  async check(): Promise<Unavailable | null> {
    const { issuer } = this.#settings;
    if (issuer === null) return null;
    if (this.#document === null && !(await this.#loadSaved(issuer))) return unavailable(UNREADABLE);
    await this.#fetch(issuer);
    return this.#failure;
  }

  #server(document: Partial<Document>): AuthorizationServer {
    const { issuer, endpoints } = this.#settings;
    return {
      ...document,
      issuer: document.issuer ?? issuer ?? new URL(endpoints.token ?? 'https://invalid.invalid').origin,
      ...(endpoints.authorization !== null && { authorization_endpoint: endpoints.authorization }),
      ...(endpoints.token !== null && { token_endpoint: endpoints.token }),
      ...(endpoints.deviceAuthorization !== null && { device_authorization_endpoint: endpoints.deviceAuthorization }),
      ...(endpoints.revocation !== null && { revocation_endpoint: endpoints.revocation }),
    };
  }

  /** @returns false if it can't be known what was saved: then no document may be used, because it could move an endpoint */
  async #loadSaved(issuer: string): Promise<boolean> {
    const saved = await this.#cache.load().catch(() => undefined);
    if (saved === undefined) return false;
    const document = saved === null ? null : parseBody(documentSchema, saved);
    if (document !== null && findProblem(document, issuer) === null) this.#document ??= document;
    return true;
  }

  /** Never rejects: in the background nobody waits for it, and an error would end the hub. */
  async #fetch(issuer: string): Promise<void> {
    const { document, problem } = await fetchDocument(issuer, this.#http).catch((error: unknown) => {
      const detail = `discovery: ${messageOf(error).slice(0, 100)}`;
      return { document: null, problem: unavailable(detail) };
    });
    this.#failure = problem;
    if (document === null) {
      this.#failedAt = this.#now();
      return;
    }
    this.#fetchedAt = this.#now();
    this.#moved = this.#document && findMovedEndpoint(this.#document, document, this.#settings.endpoints);
    if (this.#moved !== null) return;
    // An endpoint that is left out stays known: otherwise the document after that could name it anywhere.
    this.#document = { ...this.#document, ...document };
    await this.#cache.save(JSON.stringify(this.#document));
  }
}

/** @param configured the endpoints that the hub uses in place of those of the documents */
function findMovedEndpoint(before: Document, now: Document, configured: Endpoints): MovedEndpoint | null {
  const originOf = (endpoint: string) => new URL(endpoint).origin;
  const known = [...Object.values(ENDPOINT_NAMES).map((name) => before[name]), ...Object.values(configured)];
  for (const [endpoint, name] of Object.entries(ENDPOINT_NAMES)) {
    const [from, to] = [before[name], now[name]];
    if (to === undefined || configured[endpoint as keyof Endpoints] !== null) continue;
    // One that is new may only be where others are.
    const allowed = (from === undefined ? known : [from]).flatMap((one) => (one ? originOf(one) : []));
    const [first] = allowed;
    if (first !== undefined && !allowed.includes(originOf(to))) return { key: name, from: first, to: new URL(to).href };
  }
  return null;
}

/** The endpoints of a server as the hub uses them. */
export function endpointsOf(server: AuthorizationServer): Endpoints {
  return {
    authorization: server.authorization_endpoint ?? null,
    token: server.token_endpoint ?? null,
    deviceAuthorization: server.device_authorization_endpoint ?? null,
    revocation: server.revocation_endpoint ?? null,
  };
}

/** A fetched document, or why there is none. */
type FetchResult =
  | { readonly document: Document; readonly problem: null }
  | { readonly document: null; readonly problem: Unavailable };

/** Fetches the document by OpenID Connect Discovery, or from the address of RFC 8414 if there is none. */
async function fetchDocument(issuer: string, http: PooledHttpClient): Promise<FetchResult> {
  let problem = unavailable('');
  // Some servers answer every address with their page.
  let page: Unavailable | null = null;
  for (const address of metadataAddresses(issuer)) {
    const exchange = await http.send('GET', address);
    if (exchange.kind !== 'answer') {
      const detail = `discovery: ${exchange.detail}`;
      return { document: null, problem: unreachable({ ...exchange, detail }) };
    }
    const { status, body, retryAfter, portalTime, redirect } = exchange.response;
    const target = redirect === undefined ? '' : `, a redirect to ${redirect}`;
    problem = { ...unavailable(`discovery: HTTP ${status} at ${issuer}${target}`), retryAfter, portalTime };
    if (status === 429 || status >= 500) break;
    problem = { ...problem, isOther: true };
    if (status !== 200) continue;
    const document = parseBody(documentSchema, body);
    if (document === null || !isSameIssuerIdentifier(document.issuer, issuer)) {
      page ??= { ...unavailable(describeUnusable(body, issuer)), isOther: true };
      continue;
    }
    const finding = findProblem(document, issuer);
    return finding === null ? { document, problem: null } : { document: null, problem: unavailable(finding) };
  }
  return { document: null, problem: page ?? problem };
}

/** Of OpenID Connect Discovery, 4, below the path of the issuer, and of RFC 8414, 3.1, before it. */
function metadataAddresses(issuer: string): URL[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    new URL(`${origin}${path}/.well-known/openid-configuration`),
    new URL(`${origin}/.well-known/oauth-authorization-server${path}`),
  ];
}

function describeUnusable(body: string, issuer: string): string {
  const named = parseBody(v.looseObject({ issuer: v.string() }), body)?.issuer;
  return named === undefined || isSameIssuerIdentifier(named, issuer)
    ? `discovery: the document at ${issuer} is no authorization server metadata (RFC 8414)`
    : `discovery: the document at ${issuer} names another issuer, ${JSON.stringify(named.slice(0, 100))}: correct the key issuer`;
}

/** Why there is no metadata. `isOther`: the server answers, but is not that issuer. */
type Unavailable = Unreachable & { readonly portalTime: number | null; readonly isOther?: true };

function unavailable(detail: string): Unavailable {
  return unreachable({ detail });
}

/** A document is trusted for the issuer that it was fetched from only if it names that issuer (RFC 8414, 3.3). */
function isSameIssuerIdentifier(named: string, issuer: string): boolean {
  return URL.parse(named)?.href === new URL(issuer).href;
}

/** Why the hub must not use a document; null if it may. */
function findProblem(document: Document, issuer: string): string | null {
  if (!isSameIssuerIdentifier(document.issuer, issuer)) return `discovery: the document names another issuer`;
  for (const [name, value] of Object.entries(document)) {
    if (!name.endsWith('_endpoint') || typeof value !== 'string' || isAllowedEndpoint(value, issuer)) continue;
    return `discovery: ${name} must be an https URL (found ${JSON.stringify(value.slice(0, 100))})`;
  }
  return null;
}

function isAllowedEndpoint(value: string, issuer: string): boolean {
  const url = URL.parse(value);
  if (url === null || url.username !== '' || url.password !== '') return false;
  if (url.protocol === 'https:') return true;
  return url.origin === new URL(issuer).origin && isLoopbackHost(url.hostname);
}
