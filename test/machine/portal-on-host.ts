import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { curl } from '../netns/hub-on-host.ts';
import { rememberSecrets } from '../support/logs.ts';
import type { Host, Process } from '../support/netns.ts';
import { stateFolder } from '../support/state-folder.ts';

const PROGRAM = join(import.meta.dirname, '../netns/portal-on-host.ts');

interface Started {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** A portal emulator over TLS on a host of the LAN, reached by a name that has to be looked up. */
export class PortalOnHost implements AsyncDisposable {
  readonly clientSecret: string;
  readonly #host: Host;
  readonly #started: Started;
  readonly #process: Process;
  readonly #folder: Disposable & { readonly path: string };

  private constructor(host: Host, started: Started, process: Process, folder: Disposable & { readonly path: string }) {
    this.clientSecret = started.clientSecret;
    this.#host = host;
    this.#started = started;
    this.#process = process;
    this.#folder = folder;
  }

  /** @param options `tokenLifetime` in seconds */
  static async start(
    host: Host,
    options: { readonly name: string; readonly tokenLifetime: number },
  ): Promise<PortalOnHost> {
    const folder = stateFolder();
    const caFile = join(folder.path, 'portal-ca.pem');
    const running = host.spawn(process.execPath, [PROGRAM, JSON.stringify({ ...options, caFile })]);
    const started = await running.line((line) => JSON.parse(line) as Started, 30_000);
    rememberSecrets([started.clientSecret]);
    return new PortalOnHost(host, started, running, folder);
  }

  /** The section of a hub's configuration; `portal-ca.pem` and `portal-home.secret` are its own to write. */
  get configuration(): string {
    const { baseUrl, frontendUrl, clientId } = this.#started;
    return [
      '[portals.home]',
      `base_url = "${baseUrl}"`,
      `frontend_url = "${frontendUrl}"`,
      `client_id = "${clientId}"`,
      'client_secret_file = "portal-home.secret"',
      'ca_file = "portal-ca.pem"',
      '',
    ].join('\n');
  }

  /** Its CA's certificate, PEM. */
  ca(): Promise<string> {
    return readFile(this.#caFile, 'utf8');
  }

  /** A user logs in through the link; the hub finds the code when it polls. */
  async logIn(link: URL): Promise<void> {
    const body = JSON.stringify({ state: link.searchParams.get('state'), user: 'demo' });
    await this.#ask('/_emulator/login', '--fail', '--header', 'content-type: application/json', '--data', body);
  }

  /** Whether the cloud's API takes a token. */
  async takes(token: string): Promise<boolean> {
    const said = await this.#ask(
      '/api/whoami',
      '--header',
      `authorization: Bearer ${token}`,
      '--write-out',
      ' %{http_code}',
    );
    return said.endsWith(' 200');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop();
    this.#folder[Symbol.dispose]();
  }

  get #caFile(): string {
    return join(this.#folder.path, 'portal-ca.pem');
  }

  /** Asks it on its own host, which needs no DNS. */
  #ask(path: string, ...args: string[]): Promise<string> {
    const { hostname, port } = new URL(this.#started.baseUrl);
    const here = ['--resolve', `${hostname}:${port}:127.0.0.1`, '--cacert', this.#caFile];
    return curl(this.#host, [...here, ...args, `${this.#started.baseUrl}${path}`]);
  }
}
