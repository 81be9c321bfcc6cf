import { createInterface } from 'node:readline';
import { inspect } from 'node:util';

/** What a client is to do. */
export type Capability =
  | 'discovery'
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'private_key_jwt'
  | 'device_flow'
  | 'refresh_token'
  | 'registration'
  | 'revocation';

/** What an appliance is configured with, and what each capability needs in addition. */
export interface CapabilityInput {
  /** The hub's HTTPS origin. */
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly scope: string;
  /** For `private_key_jwt`: the private key, a JWK of P-256. */
  readonly key: JsonWebKey;
  readonly refresh_token: string;
  /** The token that the cloud rejected. */
  readonly access_token: string;
  /** For the registration: the client metadata (RFC 7591, 2). */
  readonly metadata: { readonly client_name: string; readonly scope: string };
  /** From `latchkey invite`; null while registration is open. */
  readonly initial_access_token: string | null;
}

/** A line of a client's standard input, as JSON. */
export interface ClientTask {
  readonly capability: Capability;
  readonly input: Partial<CapabilityInput>;
}

/** A line of a client's standard output, as JSON: what to show to a person, and the result of a task. */
export type ClientOutput =
  | { readonly shown: unknown }
  | { readonly response: Readonly<Record<string, unknown>> }
  | { readonly failed: string };

/** What a client can do. Each handler returns the hub's response. */
export type CapabilityHandlers = Partial<Record<Capability, (input: CapabilityInput) => Promise<unknown>>>;

/** Runs a client as a program: it reads tasks from standard input, and writes lines to standard output. */
export async function serveTasks(handlers: CapabilityHandlers): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { capability, input } = JSON.parse(line) as ClientTask;
    try {
      const handler = handlers[capability];
      if (handler === undefined) throw new Error(`the library has no ${capability}`);
      const response = await handler(input as CapabilityInput);
      write({ response: (response ?? {}) as Record<string, unknown> });
    } catch (error) {
      write({ failed: inspect(error) });
    }
  }
}

/** Shows something to a person during a task. */
export function showUser(prompt: unknown): void {
  write({ shown: prompt });
}

function write(line: ClientOutput): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
