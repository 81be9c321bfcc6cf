import { setTimeout as sleep } from 'node:timers/promises';

/** Where Node's inspector listens once a process was asked for it (SIGUSR1), unless its flags say otherwise. */
const LIST = 'http://127.0.0.1:9229/json';
/** How long it may take until it does, in ms. */
const LONGEST = 5000;

/** Node's inspector of a process, by the Chrome DevTools Protocol. One process at a time: all have the same port. */
export class Inspector implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { id, result, error } = JSON.parse(String(data));
      const answer = this.#answers.get(id);
      if (error === undefined) answer?.resolve(result);
      else answer?.reject(new Error(`the inspector answers: ${error.message}`));
    };
    socket.onclose = () => {
      for (const { reject } of this.#answers.values()) reject(new Error('the inspector was closed'));
    };
  }

  /** @throws Error where the process opens none in time */
  static async of(pid: number): Promise<Inspector> {
    process.kill(pid, 'SIGUSR1');
    for (const until = Date.now() + LONGEST; Date.now() < until; await sleep(100)) {
      const [target] = await fetch(LIST).then(
        (response) => response.json() as Promise<{ webSocketDebuggerUrl: string }[]>,
        () => [],
      );
      if (target === undefined) continue;
      const socket = new WebSocket(target.webSocketDebuggerUrl);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error(`nobody can connect to ${target.webSocketDebuggerUrl}`));
      await promise;
      return new Inspector(socket);
    }
    throw new Error(`process ${pid} opened no inspector at ${LIST}: does another one have that port?`);
  }

  /** Calls a method of the protocol. @throws Error as the inspector says */
  call<Result = unknown>(method: string, params: Record<string, unknown> = {}): Promise<Result> {
    const id = this.#answers.size + 1;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answer.promise as Promise<Result>;
  }

  /** Has the process close its inspector, so that another one's can have the port. */
  async [Symbol.asyncDispose](): Promise<void> {
    const later = "setTimeout(() => process.getBuiltinModule('node:inspector').close(), 50)";
    await this.call('Runtime.evaluate', { expression: later });
    this.#socket.close();
    for (let tries = 0; tries < 50 && (await fetch(LIST).then(Boolean, () => false)); tries += 1) await sleep(100);
  }
}
