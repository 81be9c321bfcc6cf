import type { GenericSchema, ObjectEntries, StrictObjectSchema } from 'valibot';

/** One answer of an operation. Without `body` it has none that a program would read. */
export interface Answer {
  readonly description: string;
  /** A schema of the JSON body, or the media type of another one. */
  readonly body?: GenericSchema | 'text/html' | 'text/css' | 'text/javascript' | 'text/event-stream';
  /** Headers that matter to a client, with what each says. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Members by name: of a path, a query, a form or a JSON body. */
type Members = StrictObjectSchema<ObjectEntries, undefined>;

/** One method of one path, as `GET /_emulator/openapi.json` tells it. */
export interface Operation {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With its parameters in braces (RFC 6570): `/external/oauth2helper/config/{client_id}`. */
  readonly path: string;
  /** Which of the two origins serves it. */
  readonly origin: 'base' | 'frontend';
  /** Unique, for generators of clients. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: Members;
  readonly query?: Members;
  readonly form?: GenericSchema;
  readonly json?: GenericSchema;
  /** The ways to authenticate; default: none. */
  readonly security?: 'client' | 'bearer';
  /** By status. What every path may answer (404 for none, 405, 413, whatever a fault says) is left out. */
  readonly answers: Readonly<Record<number, Answer>>;
}
