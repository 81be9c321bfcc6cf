import { json } from 'node:stream/consumers';

/** What a client is asked to do. */
export type Capability =
  | 'discovery'
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'private_key_jwt'
  | 'device_flow'
  | 'refresh_token'
  | 'registration'
  | 'revocation';

/** What an appliance is given when it is set up, and what the capability at hand needs beside. */
export interface Given {
  /** The hub's HTTPS origin. */
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly scope: string;
  /** For `private_key_jwt`: the private key, a JWK of P-256. */
  readonly key: JsonWebKey;
  readonly refresh_token: string;
  /** The token that the cloud refused. */
  readonly access_token: string;
  /** For the registration: what the appliance says of itself (RFC 7591, 2). */
  readonly metadata: { readonly client_name: string; readonly scope: string };
  /** Of `latchkey invite`; null while registration is open. */
  readonly initial_access_token: string | null;
}

/** What a client can do: each gives what the hub said to it. */
export type Abilities = Partial<Record<Capability, (given: Given) => Promise<unknown>>>;

/**
 * Runs one client as a program: its argument names the capability, what it is given comes on stdin, and what the hub said
 * goes to stdout, as the last line of JSON.
 */
export async function converse(abilities: Abilities): Promise<void> {
  const ability = abilities[process.argv[2] as Capability];
  if (ability === undefined) throw new Error(`the library has no ${process.argv[2]}`);
  say(await ability((await json(process.stdin)) as Given));
}

/** Says something on the way: what a person has to be shown. */
export function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what ?? {})}\n`);
}
