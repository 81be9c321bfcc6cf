import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Agent, request } from 'undici';
import { createAgent } from './agent.ts';
import { logFile, rememberSecrets } from './logs.ts';
import { MAIN, SHARED_CACHE } from './program.ts';

/** The portal emulator in its own process, controlled by its API below `/_emulator/`. */
export class EmulatorProcess implements AsyncDisposable {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The CA's file, if it uses TLS. */
  readonly caFile: string | undefined;
  /** The CA's certificate, PEM; null if it does not use TLS. */
  readonly ca: string | null;
  readonly #child: ChildProcess;
  readonly #agent: Agent;

  private constructor(child: ChildProcess, startup: Started) {
    this.#child = child;
    this.baseUrl = startup.base_url;
    this.frontendUrl = startup.frontend_url;
    this.clientId = startup.client_id;
    this.clientSecret = startup.client_secret;
    this.caFile = startup.ca_file;
    this.ca = startup.ca_file === undefined ? null : readFileSync(startup.ca_file, 'utf8');
    this.#agent = createAgent({ connections: 16, connect: { ca: this.ca ?? [] } });
  }

  /** @param flags of `latchkey emulator` */
  static async start(...flags: string[]): Promise<EmulatorProcess> {
    const child = spawn(process.execPath, [MAIN, 'emulator', '--json', ...flags], {
      env: { PATH: process.env['PATH'], HOME: '/nonexistent', XDG_CACHE_HOME: SHARED_CACHE },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stderr.pipe(createWriteStream(logFile('emulator'), { mode: 0o600 }));
    for await (const line of createInterface({ input: child.stdout })) {
      const emulator = new EmulatorProcess(child, JSON.parse(line) as Started);
      rememberSecrets([emulator.clientSecret]);
      return emulator;
    }
    throw new Error(`the emulator exited: ${child.exitCode ?? child.signalCode}`);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /**
   * Sends a request to the base origin. Retries a few times if no connection can be made, as with a fault at the TLS
   * handshake.
   * @param body sent as JSON
   */
  async ask(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    { body, headers = {} }: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
  ): Promise<{ readonly status: number; readonly answer: unknown }> {
    for (let tries = 1; ; tries++) {
      try {
        const sent = await request(`${this.baseUrl}${path}`, {
          method,
          dispatcher: this.#agent,
          headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const text = await sent.body.text();
        return { status: sent.statusCode, answer: text === '' ? null : JSON.parse(text) };
      } catch (error) {
        if (tries === 6) throw error;
      }
    }
  }

  /** Logs a user in without a browser. @returns where a browser would be redirected */
  async login(body: { readonly state: string; readonly user: string }): Promise<{ readonly location: string }> {
    const { status, answer } = await this.ask('POST', '/_emulator/login', { body });
    if (status !== 200) throw new Error(`the login got HTTP ${status}`);
    return answer as { location: string };
  }

  /** @param fault in the format of the API */
  async addFault(fault: Readonly<Record<string, unknown>>): Promise<void> {
    const { status, answer } = await this.ask('POST', '/_emulator/faults', { body: fault });
    if (status !== 201) throw new Error(`the fault got HTTP ${status}: ${JSON.stringify(answer)}`);
  }

  /** Kills it at once, as a power cut does. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
    await this.kill();
  }
}

interface Started {
  readonly base_url: string;
  readonly frontend_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly ca_file?: string;
}
