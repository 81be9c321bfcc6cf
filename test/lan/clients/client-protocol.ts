import { createInterface } from 'node:readline';
import { inspect } from 'node:util';

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
export interface CapabilityInput {
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

/** A line of a client's standard input, as JSON. */
export interface ClientTask {
  readonly capability: Capability;
  readonly given: Partial<CapabilityInput>;
}

/** A line of a client's standard output, as JSON: what a person is shown meanwhile, and how a task has ended. */
export type ClientOutput =
  | { readonly shown: unknown }
  | { readonly said: Readonly<Record<string, unknown>> }
  | { readonly failed: string };

/** What a client can do: each gives what the hub said to it. */
export type CapabilityHandlers = Partial<Record<Capability, (given: CapabilityInput) => Promise<unknown>>>;

/** Runs one client as a program: it does each task of its standard input, and writes lines to its standard output. */
export async function serveTasks(abilities: CapabilityHandlers): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { capability, given } = JSON.parse(line) as ClientTask;
    try {
      const ability = abilities[capability];
      if (ability === undefined) throw new Error(`the library has no ${capability}`);
      const said = await ability(given as CapabilityInput);
      write({ said: (said ?? {}) as Record<string, unknown> });
    } catch (error) {
      write({ failed: inspect(error) });
    }
  }
}

/** Shows a person something on the way. */
export function showUser(what: unknown): void {
  write({ shown: what });
}

function write(line: ClientOutput): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
