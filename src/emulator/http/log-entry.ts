import type { Endpoint } from './endpoint.ts';
import type { LoggedRequest } from './logged-request.ts';
import type { Masking } from './masking.ts';
import { Received } from './received.ts';

/** What was answered: where it sends a browser, or its JSON; empty for a page. */
export type Answer = { readonly location: string } | { readonly json: string };

/** What is made out only when somebody looks. */
type Shown = Pick<LoggedRequest, 'client' | 'url' | 'query' | 'form' | 'authorization' | 'answer'>;

const NOTHING: Answer = { json: '' };

/** Characters of a request and its answer that are kept as they are. Of longer ones only what is shown is kept. */
const LONGEST = 4_000;

/** One request in the log. Most are never looked at, so secrets are masked when one is shown. */
export class LogEntry {
  readonly number: number;
  status: number | null = null;
  fault: string | undefined;
  readonly #at: number;
  readonly #endpoint: Endpoint;
  readonly #method: string;
  readonly #masking: Masking;
  #request: Received | Shown;
  #answer = NOTHING;

  /** @param at milliseconds since 1970 */
  constructor(number: number, at: number, endpoint: Endpoint, request: Received, masking: Masking) {
    this.number = number;
    this.#at = at;
    this.#endpoint = endpoint;
    this.#method = request.method;
    this.#masking = masking;
    this.#request = request;
  }

  answered(status: number, answer: Answer): void {
    this.status = status;
    this.#answer = answer;
  }

  /** Nothing more will happen to it: from here on it takes little room. */
  close(): void {
    if (!(this.#request instanceof Received)) return;
    this.#request.rest();
    const answer = 'json' in this.#answer ? this.#answer.json : this.#answer.location;
    if (this.#request.size + answer.length <= LONGEST) return;
    this.#request = this.#show(this.#request);
    this.#answer = NOTHING;
  }

  /** The request as the outside may see it. */
  view(): LoggedRequest {
    const shown = this.#request instanceof Received ? this.#show(this.#request) : this.#request;
    return {
      number: this.number,
      time: new Date(this.#at).toISOString(),
      endpoint: this.#endpoint,
      client: shown.client,
      method: this.#method,
      url: shown.url,
      query: shown.query,
      form: shown.form,
      authorization: shown.authorization,
      status: this.status,
      answer: shown.answer,
      ...(this.fault === undefined ? {} : { fault: this.fault }),
    };
  }

  #show(request: Received): Shown {
    const masking = this.#masking;
    return {
      client: request.client,
      url: path(request, masking),
      query: masking.form(request.query),
      form: masking.form(request.form),
      authorization: request.authorization?.split(' ')[0]?.slice(0, 20).toLowerCase() ?? null,
      answer:
        'json' in this.#answer ? masking.json(this.#answer.json) : { location: masking.address(this.#answer.location) },
    };
  }
}

/** The path with an unknown client in it masked; of paths that are no endpoint's, the beginning. */
function path({ clientInPath: id, url, route = '' }: Received, masking: Masking): string {
  if (id === undefined) return (url.split('?')[0] ?? '').slice(0, 100);
  return route.replace(':client_id', masking.client(id));
}
