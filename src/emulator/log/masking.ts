import { sha256 } from '../../system/compare.ts';
import { systemRandom } from '../../system/random.ts';
import type { Client } from '../settings/effective-settings.ts';

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
export class Masking {
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
