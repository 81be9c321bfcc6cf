import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';

interface PushedRequest {
  readonly issuer: string | null;
  readonly clientId: string;
  readonly parameters: ReadonlyMap<string, string>;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/** Seconds until the user must open a pushed request (RFC 9126, 2.2). */
export const PUSHED_REQUEST_LIFETIME_SECONDS = 90;

/** How each `request_uri` begins. */
export const REQUEST_URI_START = 'urn:ietf:params:oauth:request_uri:';

/** Requests kept. */
const MAX_REQUESTS = 10_000;

/** Authorization requests that clients have pushed, until their response (RFC 9126). A restart removes them. */
export class PushedRequests {
  readonly #requests = new BoundedMap<PushedRequest>(MAX_REQUESTS);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Keeps a valid request to an issuer. @returns its `request_uri` */
  add(issuer: string | null, clientId: string, parameters: ReadonlyMap<string, string>): string {
    const uri = `${REQUEST_URI_START}${systemRandom.token(32)}`;
    const expiresAt = this.#now() + 1000 * PUSHED_REQUEST_LIFETIME_SECONDS;
    this.#requests.set(uri, { issuer, clientId, parameters, expiresAt });
    return uri;
  }

  /**
   * The parameters of a client's request, or null if it is unknown, expired or used.
   * @param lifetime how long the user has from now on for the login, in seconds
   */
  open(uri: string, issuer: string | null, clientId: string, lifetime: number): PushedRequest['parameters'] | null {
    const request = this.#requests.get(uri);
    if (request?.clientId !== clientId || request.issuer !== issuer || this.#now() >= request.expiresAt) return null;
    request.expiresAt = this.#now() + 1000 * lifetime;
    return request.parameters;
  }

  /** Removes a request, which has its response now. */
  delete(uri: string): void {
    this.#requests.delete(uri);
  }
}
