/** The portal's endpoints. */
export const ENDPOINTS = ['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami'] as const;

/** Which of the portal's endpoints a request is for; `unknown`: none of them. */
export type Endpoint = (typeof ENDPOINTS)[number] | 'unknown';

/**
 * One request and its answer. Secrets show as `#` and eight characters of a salted hash, so that equal ones look equal;
 * with the option `showSecrets` they show as they are.
 */
export interface LoggedRequest {
  /** From 1, growing; a reset does not start it again. */
  readonly number: number;
  /** RFC 3339, UTC, by the emulator's clock. */
  readonly time: string;
  readonly endpoint: Endpoint;
  /** The registered client named in the request, authenticated or not. */
  readonly client: string | null;
  readonly method: string;
  /** The path; what came in the query is under `query`. */
  readonly url: string;
  readonly query: Readonly<Record<string, string>>;
  /** The form in the body. */
  readonly form: Readonly<Record<string, string>>;
  /** The scheme of the Authorization header in lower case, or null. */
  readonly authorization: string | null;
  /** The answer's status, or null where it was not (yet) given or did not arrive whole. */
  readonly status: number | null;
  /**
   * What the emulator answered: the members of the JSON, or the `location` of a redirect; empty for a page. What was
   * made and then lost on the way is here too, beside the status null.
   */
  readonly answer: Readonly<Record<string, string | number | boolean | null>>;
  /** The id of the fault that struck the request. */
  readonly fault?: string | undefined;
}
