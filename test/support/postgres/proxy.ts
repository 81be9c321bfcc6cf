import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresConversation } from './conversation.ts';

/** A statement that commits a transaction. */
export const COMMIT = /^\s*commit\b/i;

/** One message that is to be lost. */
interface Loss {
  /**
   * `request`: the server does not receive the statement. `response`: it executes it, and the client does not learn
   * that.
   */
  readonly message: 'request' | 'response';
  /** Matches the text of the statement, or of a query of several statements. */
  readonly statement: RegExp;
  readonly by: 'cut' | 'hold';
  readonly happened: () => void;
}

/** The two sockets of one connection. */
interface Sockets {
  readonly client: Socket;
  readonly server: Socket;
}

/** A TCP proxy on loopback in front of a PostgreSQL server. At first it passes everything on. */
export class PostgresProxy implements AsyncDisposable {
  #target: number;
  readonly #listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  readonly #connections = new Set<Sockets>();
  readonly #losses: Loss[] = [];
  /** While data is held; resolved when it passes again. */
  #held: PromiseWithResolvers<void> | null = null;
  #delayMs = 0;
  #refuses = false;

  private constructor(target: number) {
    this.#target = target;
  }

  /** @param target the server, which listens on 127.0.0.1 */
  static async start(target: { readonly port: number }): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target.port);
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    return proxy;
  }

  /** The same URL with this proxy in the place of the server. */
  urlOf(url: string): string {
    const changed = new URL(url);
    const address = this.#listener.address();
    changed.port = String(typeof address === 'object' ? address?.port : '');
    return changed.href;
  }

  /** Resets all open connections, on both sides. */
  cut(): void {
    for (const connection of this.#connections) reset(connection);
  }

  /** Resets all open connections, and all that clients open from now on. */
  refuse(): void {
    this.#refuses = true;
    this.cut();
  }

  /**
   * Leads all further connections to another server on 127.0.0.1, as an address does that moves to a promoted standby.
   */
  redirect(target: { readonly port: number }): void {
    this.#target = target.port;
  }

  /** Passes nothing on. Connections stay open, and further ones are accepted. */
  hold(): void {
    this.#held ??= Promise.withResolvers();
  }

  /** Passes each piece of data on only after this time, in both directions. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Ends all faults: passes on what was held, and what comes from now on. */
  pass(): void {
    this.#refuses = false;
    this.#delayMs = 0;
    this.#held?.resolve();
    this.#held = null;
  }

  /**
   * Loses one request or response: cuts its connection, or holds all data when it would be passed on. Sees only
   * statements of connections without TLS.
   * @param message `request`: the server does not receive the statement; `response`: it has executed and, outside a
   *   transaction, committed it, and the client does not learn that
   * @param statement matches the text of the statement, or of a query of several statements
   * @returns a promise that resolves when it is lost
   */
  lose(
    message: 'request' | 'response',
    statement: RegExp,
    { by = 'cut' }: { readonly by?: 'cut' | 'hold' } = {},
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#losses.push({ message, statement, by, happened: resolve });
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.refuse();
    this.#held?.resolve();
    this.#held = null;
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  #accept(client: Socket): void {
    if (this.#refuses) return void client.resetAndDestroy();
    const server = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const connection = { client, server };
    this.#connections.add(connection);
    for (const socket of [client, server]) {
      socket.on('error', () => undefined); // the loops below throw it
      socket.on('close', () => {
        if (client.closed && server.closed) this.#connections.delete(connection);
      });
    }
    const conversation = new PostgresConversation();
    const directions = [this.#passRequests(connection, conversation), this.#passResponses(connection, conversation)];
    void Promise.all(directions).catch(() => reset(connection));
  }

  async #passRequests(connection: Sockets, conversation: PostgresConversation): Promise<void> {
    const { client, server } = connection;
    for await (const bytes of client.iterator({ destroyOnReturn: false })) {
      await this.#passage();
      for (const part of conversation.fromClient(bytes)) {
        const loss = part.executes === null ? null : this.#takeLoss('request', part.executes);
        if (loss !== null && (await this.#lose(connection, loss)) === 'cut') return;
        await write(server, part.bytes);
      }
    }
    await this.#passage();
    server.end();
  }

  async #passResponses(connection: Sockets, conversation: PostgresConversation): Promise<void> {
    const { client, server } = connection;
    let loss: Loss | null = null;
    let lost: Buffer[] = [];
    for await (const bytes of server.iterator({ destroyOnReturn: false })) {
      await this.#passage();
      for (const part of conversation.fromServer(bytes)) {
        if (part.completes !== null) loss ??= this.#takeLoss('response', part.completes);
        lost.push(part.bytes);
        // A statement outside a transaction is committed only when the server is ready for the next one.
        if (loss !== null && !part.isReady) continue;
        if (loss !== null && (await this.#lose(connection, loss)) === 'cut') return;
        await write(client, Buffer.concat(lost));
        loss = null;
        lost = [];
      }
    }
    await this.#passage();
    client.end();
  }

  /** Waits until data may pass. */
  async #passage(): Promise<void> {
    while (this.#held !== null) await this.#held.promise;
    if (this.#delayMs > 0) await sleep(this.#delayMs);
  }

  /** The loss that this message is to suffer, which is removed. */
  #takeLoss(message: Loss['message'], statement: string): Loss | null {
    const index = this.#losses.findIndex((loss) => loss.message === message && loss.statement.test(statement));
    return index === -1 ? null : (this.#losses.splice(index, 1)[0] ?? null);
  }

  /** @returns `cut` if the connection is cut, otherwise `hold` when the message may pass */
  async #lose(connection: Sockets, { by, happened }: Loss): Promise<Loss['by']> {
    if (by === 'cut') reset(connection);
    else this.hold();
    happened();
    if (by === 'hold') await this.#passage();
    return by;
  }
}

function reset({ client, server }: Sockets): void {
  client.resetAndDestroy();
  server.resetAndDestroy();
}

async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (!socket.write(bytes)) await once(socket, 'drain');
}
