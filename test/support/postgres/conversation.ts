/** A part of what a client sends: usually one message. */
export interface ClientPart {
  readonly bytes: Buffer;
  /** The statements that the server executes when it receives this; null if it executes none. */
  readonly executes: string | null;
}

/** A part of what a server sends: usually one message. */
export interface ServerPart {
  readonly bytes: Buffer;
  /** The statements of which one has been executed without an error; null for any other message. */
  readonly completes: string | null;
  /** Whether the server waits for the next query: a transaction that had to be committed is committed. */
  readonly isReady: boolean;
}

/** What the server has been asked to do and has not finished. */
type Pending =
  | { readonly kind: 'query' | 'execute'; readonly statement: string }
  /** The end of a series of `execute`. */
  | { readonly kind: 'sync' };

/** The codes of startup messages that ask for an encrypted connection: SSLRequest and GSSENCRequest. */
const ENCRYPTION_REQUESTS = [80_877_103, 80_877_104];

/**
 * The two directions of a connection in the PostgreSQL protocol 3.0, split into messages ("Message Formats" in
 * PostgreSQL's documentation). An encrypted connection is not split.
 */
export class PostgresConversation {
  #phase: 'startup' | 'negotiation' | 'session' | 'encrypted' = 'startup';
  readonly #client = new MessageReader();
  readonly #server = new MessageReader();
  /** The texts of prepared statements, and those of the portals to which they are bound, by name. */
  readonly #prepared = new Map<string, string>();
  readonly #portals = new Map<string, string>();
  readonly #pending: Pending[] = [];

  /** Splits what the client has sent. */
  *fromClient(bytes: Buffer): Generator<ClientPart> {
    if (this.#phase === 'encrypted') return yield { bytes, executes: null };
    for (const message of this.#client.read(bytes, () => this.#phase === 'session')) {
      yield { bytes: message.bytes, executes: this.#receiveFromClient(message) };
    }
  }

  /** Splits what the server has sent. */
  *fromServer(bytes: Buffer): Generator<ServerPart> {
    if (this.#phase === 'negotiation') {
      // The answer is one byte, and the client sends nothing before it has it.
      this.#phase = bytes.toString('latin1') === 'N' ? 'startup' : 'encrypted';
      return yield { bytes, completes: null, isReady: false };
    }
    if (this.#phase === 'encrypted') return yield { bytes, completes: null, isReady: false };
    for (const message of this.#server.read(bytes, () => true)) {
      const completes = this.#completedBy(message.type);
      yield { bytes: message.bytes, completes, isReady: message.type === 'Z' };
    }
  }

  #receiveFromClient({ type, payload }: Message): string | null {
    const [first = '', second = ''] = payload.toString('utf8').split('\0', 2);
    switch (type) {
      case '': // startup
        this.#phase = ENCRYPTION_REQUESTS.includes(payload.readUInt32BE()) ? 'negotiation' : 'session';
        return null;
      case 'P': // parse
        this.#prepared.set(first, second);
        return null;
      case 'B': // bind
        this.#portals.set(first, this.#prepared.get(second) ?? '');
        return null;
      case 'S': // sync
        this.#pending.push({ kind: 'sync' });
        return null;
      case 'Q': // query
        this.#pending.push({ kind: 'query', statement: first });
        return first;
      case 'E': {
        // execute
        const statement = this.#portals.get(first) ?? '';
        this.#pending.push({ kind: 'execute', statement });
        return statement;
      }
      default:
        return null;
    }
  }

  /** The statements that a message of this type completes; null if it completes none. */
  #completedBy(type: string): string | null {
    const [pending] = this.#pending;
    if (type === 'Z') {
      // ready for query; after an error the server has skipped what came before the end of the series
      const end = this.#pending.findIndex(({ kind }) => kind !== 'execute');
      this.#pending.splice(0, end + 1);
    }
    // command complete, empty query, portal suspended
    if (!['C', 'I', 's'].includes(type) || pending === undefined || pending.kind === 'sync') return null;
    if (pending.kind === 'execute') this.#pending.shift();
    return type === 'C' ? pending.statement : null;
  }
}

interface Message {
  /** One letter, or '' for the startup messages of a client, which have none. */
  readonly type: string;
  /** What follows the length. */
  readonly payload: Buffer;
  /** The whole message. */
  readonly bytes: Buffer;
}

const LENGTH_BYTES = 4;

/** Splits a stream of bytes into messages. */
class MessageReader {
  #received: Buffer = Buffer.alloc(0);

  /** The messages that are complete. @param isTyped whether the next message begins with its type */
  *read(bytes: Buffer, isTyped: () => boolean): Generator<Message> {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const start = isTyped() ? 1 : 0;
      if (this.#received.length < start + LENGTH_BYTES) return;
      const end = start + this.#received.readUInt32BE(start);
      if (this.#received.length < end) return;
      const message = this.#received.subarray(0, end);
      this.#received = this.#received.subarray(end);
      yield {
        type: message.toString('latin1', 0, start),
        payload: message.subarray(start + LENGTH_BYTES),
        bytes: message,
      };
    }
  }
}
