import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, createWriteStream } from 'node:fs';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { scaleDeadline } from './deadlines.ts';
import { logFile } from './logs.ts';

/** Firefox of Debian. Playwright's own protocol needs its own Firefox, and Playwright's BiDi a later one. */
const FIREFOX = '/usr/bin/firefox-esr';

/** Why Firefox can't be started here; null if it can. */
export function firefoxSkipReason(): Promise<string | null> {
  return access(FIREFOX, constants.X_OK).then(
    () => null,
    () => `${FIREFOX} is missing`,
  );
}

/** A headless Firefox with one tab. */
export interface Firefox extends AsyncDisposable {
  /** Opens an address in the tab, and waits until its document is parsed. */
  open(url: string): Promise<void>;
  /** The value of a JavaScript expression in the tab's document. @throws Error if the tab leaves the document */
  evaluate(expression: string): Promise<unknown>;
  /** Runs a function, given as source text, in each later document before its own scripts. */
  runBeforeScripts(source: string): Promise<void>;
}

/**
 * Starts Firefox with a new profile; it accepts every certificate. Everything but 127.0.0.1 goes through a proxy.
 * @param proxyPort the port of the proxy, on 127.0.0.1
 */
export async function startFirefox(proxyPort: number): Promise<Firefox> {
  await using starting = new AsyncDisposableStack();
  const profile = await mkdtemp(join(tmpdir(), 'latchkey-firefox-'));
  starting.defer(() => rm(profile, { recursive: true, force: true, maxRetries: 5 }));
  const preferences = {
    'network.proxy.type': 1,
    'network.proxy.http': '127.0.0.1',
    'network.proxy.http_port': proxyPort,
    'network.proxy.ssl': '127.0.0.1',
    'network.proxy.ssl_port': proxyPort,
    'network.proxy.allow_hijacking_localhost': true,
    'network.proxy.no_proxies_on': '127.0.0.1',
  };
  const lines = Object.entries(preferences).map(([key, value]) => `user_pref("${key}", ${JSON.stringify(value)});\n`);
  await writeFile(join(profile, 'user.js'), lines);
  const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'];
  const firefox = spawn(FIREFOX, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, HOME: profile } });
  const exited = once(firefox, 'exit');
  starting.defer(async () => {
    firefox.kill('SIGKILL');
    await exited;
  });
  const session = starting.use(await BidiSession.open(await webSocketAddress(firefox.stderr)));
  await session.send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
  const { contexts } = (await session.send('browsingContext.getTree', {})) as {
    readonly contexts: readonly { readonly context: string }[];
  };
  const context = contexts[0]?.context;
  starting.defer(() =>
    session.send('browser.close', {}).then(
      () => undefined,
      () => undefined,
    ),
  );
  const resources = starting.move();
  return {
    open: (url) =>
      session.send('browsingContext.navigate', { context, url, wait: 'interactive' }).then(() => undefined),
    async evaluate(expression) {
      const parameters = { expression, target: { context }, awaitPromise: true };
      const { result, exceptionDetails } = (await session.send('script.evaluate', parameters)) as EvaluateResult;
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
      return result?.value;
    },
    runBeforeScripts: (source) =>
      session.send('script.addPreloadScript', { functionDeclaration: source }).then(() => undefined),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** `script.evaluate` of WebDriver BiDi, for results that are strings, numbers or booleans. */
interface EvaluateResult {
  readonly result?: { readonly value?: string | number | boolean };
  readonly exceptionDetails?: { readonly text: string };
}

/** The address of the WebSocket, from what Firefox prints. The output is also logged. */
async function webSocketAddress(output: Readable): Promise<string> {
  const log = createWriteStream(logFile('firefox'));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  createInterface({ input: output })
    .on('line', (line) => {
      log.write(`${line}\n`);
      const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? [];
      if (address !== undefined) resolve(`${address}/session`);
    })
    .on('close', () => {
      log.end();
      reject(new Error('Firefox ended before it opened its WebSocket'));
    });
  return promise;
}

interface BidiMessage {
  readonly id?: number | null;
  readonly result?: unknown;
  readonly error?: string;
  readonly message?: string;
}

/** Commands of WebDriver BiDi over a WebSocket. */
class BidiSession implements Disposable {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, (message: BidiMessage) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as BidiMessage;
      this.#pending.get(message.id ?? 0)?.(message);
    });
    socket.addEventListener('close', () => {
      for (const settle of this.#pending.values()) settle({ error: 'Firefox closed the connection' });
    });
  }

  static async open(address: string): Promise<BidiSession> {
    const socket = new WebSocket(address);
    await once(socket, 'open', { signal: AbortSignal.timeout(scaleDeadline(10_000)) });
    return new BidiSession(socket);
  }

  async send(method: string, params: object): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<BidiMessage>();
    const deadline = setTimeout(() => reject(new Error(`${method} timed out`)), scaleDeadline(10_000));
    this.#pending.set(id, resolve);
    try {
      this.#socket.send(JSON.stringify({ id, method, params }));
      const { result, error, message } = await promise;
      if (error !== undefined) throw new Error(`${method}: ${error}: ${message}`);
      return result;
    } finally {
      clearTimeout(deadline);
      this.#pending.delete(id);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
