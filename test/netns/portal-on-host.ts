import { join } from 'node:path';
import type { EmulatorOptions } from '../../src/emulator/index.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { rememberSecrets } from '../support/logs.ts';
import type { Host, Process } from '../support/netns.ts';
import { runCurl } from './hub-on-host.ts';

const PROGRAM = join(import.meta.dirname, 'emulator.ts');

interface EmulatorOutput {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** A portal emulator on a host of a test's LAN. */
export class PortalOnHost implements EmulatorOutput, AsyncDisposable {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly #host: Host;
  readonly #process: Process;

  private constructor(host: Host, process: Process, started: EmulatorOutput) {
    this.#host = host;
    this.#process = process;
    this.baseUrl = started.baseUrl;
    this.frontendUrl = started.frontendUrl;
    this.clientId = started.clientId;
    this.clientSecret = started.clientSecret;
  }

  static async start(host: Host, options: EmulatorOptions = {}): Promise<PortalOnHost> {
    const running = host.spawn(process.execPath, [PROGRAM, JSON.stringify(options)]);
    const started = await running.line((line) => JSON.parse(line) as EmulatorOutput, scaleDeadline(20_000));
    rememberSecrets([started.clientSecret]);
    return new PortalOnHost(host, running, started);
  }

  /** The same with TLS, with a host name that clients have to resolve. */
  static startNamed(host: Host, name: string, options: EmulatorOptions): Promise<PortalOnHost> {
    return PortalOnHost.start(host, { ...options, tls: true, host: '0.0.0.0', publicHost: name });
  }

  /** Sends a request from its own host, where its name is known. @param args of curl */
  ask(path: string, ...args: string[]): Promise<string> {
    const { hostname, port } = new URL(this.baseUrl);
    return runCurl(this.#host, [
      '--insecure',
      '--resolve',
      `${hostname}:${port}:127.0.0.1`,
      ...args,
      this.baseUrl + path,
    ]);
  }

  /** Sends a request to its API, with a JSON body. */
  sendCommand(method: 'POST' | 'DELETE', path: string, body: object = {}): Promise<string> {
    const json = ['--header', 'content-type: application/json', '--data', JSON.stringify(body)];
    return this.ask(`/_emulator/${path}`, '--fail', '--request', method, ...json);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop();
  }
}
