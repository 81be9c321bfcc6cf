import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, request } from 'undici';
import { type ControlClient, connectControlClient } from '../../src/control/client.ts';
import type {
  ApplianceResponse,
  ConnectionResponse,
  CredentialsResponse,
  SetupCodeResponse,
  StatusResponse,
} from '../../src/control/messages.ts';
import type { CaStatus } from '../../src/core/administration.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { createAgent } from './agent.ts';
import { scaleDeadline } from './deadlines.ts';
import type { InProcessDaemon } from './in-process-daemon.ts';
import { logFile, rememberSecrets } from './logs.ts';
import { mainThreadCpuSeconds } from './processes.ts';
import { MAIN, SHARED_CACHE } from './program.ts';
import { diskFolder } from './state-folder.ts';

/** The exit status and output of a program. */
export interface ProcessResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A response of the hub's token endpoint. */
export interface TokenReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Record<string, unknown>;
}

/** A portal at which users log in without a browser, in this process or its own. */
export interface LoginPortal {
  login(of: { readonly state: string; readonly user: string }): Promise<{ readonly location: string }>;
}

export interface HubProcessOptions {
  /** The portal of the hub, named `home`. */
  readonly emulator?: Pick<Emulator, 'baseUrl' | 'frontendUrl' | 'clientId' | 'clientSecret'>;
  /**
   * The hub is configured by options of the Home Assistant app instead of TOML: these keys of its portal, which is the
   * emulator. The keys of TOML are ignored.
   */
  readonly appPortal?: Readonly<Record<string, string>>;
  /** More TOML after the sections that every test hub has. */
  readonly toml?: string;
  /** Default: `helper`. With `oauth2` the hub uses the emulator as a generic OAuth 2.0 server. */
  readonly portalType?: 'helper' | 'oauth2';
  /** Keys of `[portals.home]` as TOML lines. */
  readonly portal?: string;
  /** Keys of `[lan]` as TOML lines. */
  readonly lan?: string;
  /** `[metrics] listen`; default: no metrics. */
  readonly metrics?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** More arguments for `serve`. */
  readonly serve?: readonly string[];
  /** A program with its arguments that executes the daemon's command, which follows them. */
  readonly within?: readonly string[];
  /** The daemon's program, if it is not this checkout's. */
  readonly main?: string;
  /** Arguments for Node before the program. */
  readonly flags?: readonly string[];
  /**
   * Runs the daemon in the test's own process, where it can be stopped by SIGTERM but not killed, and its commands one
   * after another in a shared process: for tests that start many.
   */
  readonly here?: boolean;
}

/** A hub on loopback, by default in its own process, with its own state directory. */
export class HubProcess implements AsyncDisposable {
  readonly directory: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly #env: NodeJS.ProcessEnv;
  readonly #within: readonly string[];
  readonly #daemon: readonly string[];
  readonly #isHere: boolean;
  readonly #config: string;
  #child: ChildProcess | null = null;
  #here: InProcessDaemon | null = null;
  #log = '';
  #agent: Agent | null = null;

  private constructor(
    directory: string,
    httpPort: number,
    httpsPort: number,
    env: NodeJS.ProcessEnv,
    within: readonly string[],
    daemon: readonly string[],
    isHere: boolean,
    config: string,
  ) {
    this.#config = config;
    this.directory = directory;
    this.httpPort = httpPort;
    this.httpsPort = httpsPort;
    this.#env = env;
    this.#within = within;
    this.#daemon = daemon;
    this.#isHere = isHere;
  }

  /** Writes a configuration for a hub, without starting it. */
  static async prepare(options: HubProcessOptions = {}): Promise<HubProcess> {
    const directory = await mkdtemp(join(diskFolder(), 'latchkey-hub-'));
    await mkdir(join(directory, 'state'), { mode: 0o700 });
    const { emulator } = options;
    if (emulator !== undefined)
      await writeFile(join(directory, 'portal.secret'), emulator.clientSecret, { mode: 0o600 });
    const [httpPort, httpsPort] = [await reservePort(), await reservePort()];
    const portal = emulator && [
      '[portals.home]',
      ...(options.portalType === 'oauth2'
        ? ['type = "oauth2"', `issuer = "${emulator.frontendUrl}"`]
        : [`base_url = "${emulator.baseUrl}"`, `frontend_url = "${emulator.frontendUrl}"`]),
      `client_id = "${emulator.clientId}"`,
      'client_secret_file = "portal.secret"',
      options.portal ?? '',
    ];
    const toml = [
      '[hub]',
      'name = "Test hub"',
      `state_dir = "${directory}/state"`,
      '[lan]',
      `http_port = ${httpPort}`,
      `https_port = ${httpsPort}`,
      'address = "127.0.0.1"',
      'listen = ["127.0.0.1"]',
      options.lan ?? '',
      '[metrics]',
      `listen = "${options.metrics ?? ''}"`,
      ...(portal ?? []),
      options.toml ?? '',
    ];
    const env = { PATH: process.env['PATH'], HOME: directory, XDG_CACHE_HOME: SHARED_CACHE, ...options.env };
    const config = join(directory, options.appPortal === undefined ? 'latchkey.toml' : 'options.json');
    if (options.appPortal === undefined) await writeFile(config, `${toml.join('\n')}\n`);
    else {
      const { baseUrl, frontendUrl, clientId, clientSecret } = emulator ?? {};
      const home = { name: 'home', base_url: baseUrl, frontend_url: frontendUrl, client_id: clientId };
      const portals = [{ ...home, client_secret: clientSecret, ...options.appPortal }];
      const ports = { http_port: httpPort, https_port: httpsPort };
      await writeFile(config, JSON.stringify({ name: 'Test hub', address: '127.0.0.1', ...ports, portals }));
      Object.assign(env, {
        LATCHKEY_HUB_STATE_DIR: join(directory, 'state'),
        LATCHKEY_LAN_LISTEN: '127.0.0.1',
        LATCHKEY_METRICS_LISTEN: '',
      });
    }
    const { within = [], flags = [], main = MAIN, serve = [], here = false } = options;
    const daemon = [process.execPath, ...flags, main, 'serve', '--config', config, ...serve];
    return new HubProcess(directory, httpPort, httpsPort, env, within, daemon, here, config);
  }

  /** Writes a configuration and starts the hub; retries once if another test took its port. */
  static async start(options: HubProcessOptions = {}, tries = 2): Promise<HubProcess> {
    const hub = await HubProcess.prepare(options);
    try {
      await hub.launch();
      return hub;
    } catch (error) {
      await hub[Symbol.asyncDispose]();
      const portTaken = error instanceof Error && error.message.includes('EADDRINUSE');
      if (portTaken && tries > 1) return HubProcess.start(options, tries - 1);
      throw error;
    }
  }

  /** The redirect URI for portals that are ordinary OAuth 2.0 servers. */
  get callbackAddress(): string {
    return `http://127.0.0.1:${this.httpPort}/callback`;
  }

  /**
   * Adds a portal to the configuration for the next launch.
   * @param keys of its table
   * @param secrets the files that the keys name, and their contents
   */
  async addPortal(
    name: string,
    keys: Readonly<Record<string, string | boolean>>,
    secrets: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    for (const [file, text] of Object.entries(secrets)) {
      await writeFile(join(this.directory, file), text, { mode: 0o600 });
    }
    const lines = Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
    await appendFile(join(this.directory, 'latchkey.toml'), `[portals.${name}]\n${lines.join('')}`);
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** How the daemon exited unexpectedly; null while it runs, and if it was never started or was told to stop. */
  get ended(): string | null {
    const child = this.#child;
    if (child === null || (child.exitCode === null && child.signalCode === null)) return null;
    return child.signalCode ?? `status ${child.exitCode}`;
  }

  /** The file of the daemon's log; every launch has a new one. */
  get log(): string {
    return this.#log;
  }

  /** The events that the daemon has logged since its launch: all, or those of one name. */
  events(name?: string): Record<string, unknown>[] {
    // The text after the last newline is still being written.
    const lines = readFileSync(this.#log, 'utf8').split('\n').slice(0, -1);
    const events = lines
      .filter((line) => line.startsWith('{'))
      .map((line): Record<string, unknown> => JSON.parse(line));
    return name === undefined ? events : events.filter(({ event }) => event === name);
  }

  /** Starts the daemon and waits until it logs that it has started. */
  async launch(): Promise<void> {
    this.#log = logFile('hub');
    if (this.#isHere) {
      const { startInProcessDaemon: startDaemonHere } = await import('./in-process-daemon.ts');
      this.#here = await startDaemonHere(this.#config, this.#env, this.#log);
      return;
    }
    const [program = '', ...args] = [...this.#within, ...this.#daemon];
    const child = spawn(program, args, {
      env: this.#env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    child.stderr.pipe(createWriteStream(this.#log, { mode: 0o600 }));
    const lines = createInterface({ input: child.stderr });
    const output: string[] = [];
    const started = new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => {
        if (output.length < 50) output.push(line);
        if (line.includes('"hub_started"')) resolve();
      });
      child.once('exit', (code, signal) =>
        reject(new Error(`the hub exited (${code ?? signal}): ${output.join('\n')}`)),
      );
    });
    await started;
  }

  /** Sends a signal and waits for the exit. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const [child, here] = [this.#child, this.#here];
    if (here !== null && signal === 'SIGKILL') throw new Error('a daemon in this process cannot be killed');
    this.#child = null;
    this.#here = null;
    await this.#agent?.destroy();
    this.#agent = null;
    await here?.stop();
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await endOf(child);
  }

  /** Runs a CLI command against this hub. */
  async cli(...args: string[]): Promise<ProcessResult> {
    const command = { args: [...args, '--config', this.#config], env: this.#env };
    if (!this.#isHere) return runLatchkey(command.args, command.env);
    const { startInSharedProcess } = await import('../cli/shared-process.ts');
    const { status, stdout, stderr } = await startInSharedProcess(command).ended;
    return { status, stdout, stderr };
  }

  /** Runs a command with `--json` and returns its result. */
  async json<Result>(...args: string[]): Promise<Result> {
    const { status, stdout, stderr } = await this.cli(...args, '--json');
    // 3: someone must act, which `status` reports in addition to its result.
    if (status !== 0 && status !== 3) throw new Error(`latchkey ${args.join(' ')} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as Result;
  }

  /** Calls the daemon over its control socket, without a process for every command. */
  async ask<Result>(work: (control: ControlClient) => Promise<Result>): Promise<Result> {
    await using control = await connectControlClient([join(this.directory, 'state/control.sock')]);
    return await work(control);
  }

  /** Reloads the daemon's configuration. @throws Error if the daemon keeps the previous one */
  async reload(): Promise<void> {
    const { reload: id } = await this.ask((control) => control.request('reload'));
    const outcome = await eventually(async () => {
      // Meanwhile one hub stops, and the next one starts.
      const found = await this.ask((control) => control.request('reloadOutcome', { id })).catch(() => null);
      return found?.state !== 'under_way' && found;
    });
    if (outcome.state !== 'done') throw new Error(`the reload failed: ${JSON.stringify(outcome)}`);
  }

  status(): Promise<StatusResponse> {
    return this.ask((control) => control.request('status'));
  }

  /** The hub's CA: its certificate as PEM, and its pin. */
  authority(): Promise<CaStatus> {
    return this.ask((control) => control.request('authority'));
  }

  /** The `status` of one appliance. */
  async appliance(name: string): Promise<ApplianceResponse> {
    const found = (await this.status()).appliances.find((appliance) => appliance.name === name);
    if (found === undefined) throw new Error(`there is no appliance ${name}`);
    return found;
  }

  /** The `status` of one connection. */
  async connection(name: string): Promise<ConnectionResponse> {
    const found = (await this.status()).connections.find((connection) => connection.name === name);
    if (found === undefined) throw new Error(`there is no connection ${name}`);
    return found;
  }

  /** Waits until an appliance's status matches. @param seconds see {@link eventually} */
  until(name: string, matches: (status: ApplianceResponse) => boolean, seconds = 15): Promise<ApplianceResponse> {
    return eventually(async () => {
      const status = await this.appliance(name);
      return matches(status) && status;
    }, seconds);
  }

  async addAppliance(
    name: string,
    scope: string | null = null,
    portal: string | null = null,
    connection: string | null = null,
  ): Promise<CredentialsResponse> {
    // Left out without any, so that the hub of an earlier revision can be measured.
    const shared = connection === null ? {} : { connections: [connection] };
    const credentials = await this.ask((control) =>
      control.request('addAppliance', { name, scope, portal, ...shared }),
    );
    rememberSecrets([credentials.client_secret]);
    return credentials;
  }

  /** Adds a connection for appliances to share. */
  addConnection(name: string, scope: string | null = null, portal: string | null = null): Promise<ConnectionResponse> {
    return this.ask((control) => control.request('addConnection', { name, scope, portal }));
  }

  /** The setup code, and a one-time address. @param rotate whether to replace the code first */
  async setupCode({ rotate = false } = {}): Promise<SetupCodeResponse> {
    const codes = await this.ask((control) =>
      rotate ? control.request('rotateSetupCode') : control.request('setupCode'),
    );
    rememberSecrets([codes.code, codes.sign_in.split('/').at(-1) ?? '']);
    return codes;
  }

  /** Starts a pairing. @returns the authorize URL */
  async beginPairing(name: string): Promise<URL> {
    return this.ask((control) => startPairing(control, name));
  }

  /** Starts a pairing. @returns its short link */
  async shortLink(name: string): Promise<URL> {
    const { short_url = '' } = await this.ask((control) => waitingPairing(control, name));
    rememberSecrets([short_url.split('/').at(-1) ?? '']);
    return new URL(short_url);
  }

  /** Pairs a connection: logs in at the emulator and brings the code to the hub as a browser would. */
  async pair(name: string, portal: LoginPortal, user = 'demo'): Promise<void> {
    const { location } = await portal.login({ state: stateParameterOf(await this.beginPairing(name)), user });
    const response = await request(location);
    const page = await response.body.text();
    if (!/ (is|are) connected/.test(page)) throw new Error(`${name} was not paired: HTTP ${response.statusCode}`);
  }

  /** Sends a token request, as an appliance does. @param agent whose connections are used; default: the hub's own */
  async requestToken(
    { client_id, client_secret }: Pick<CredentialsResponse, 'client_id' | 'client_secret'>,
    form: Record<string, string> = {},
    agent?: Agent,
  ): Promise<TokenReply> {
    const own = async () => (this.#agent ??= createAgent({ connect: { ca: (await this.authority()).certificate } }));
    const { statusCode, headers, body } = await request(`https://127.0.0.1:${this.httpsPort}/oauth/token`, {
      method: 'POST',
      dispatcher: agent ?? (await own()),
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString(),
    });
    const text = await body.text();
    return { status: statusCode, headers, body: text === '' ? {} : JSON.parse(text) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGTERM');
    await rm(this.directory, { recursive: true, force: true });
  }
}

/**
 * Waits for the exit of a daemon that was told to stop; kills it if it uses too much processor time, because a blocked
 * event loop never handles the signal.
 */
async function endOf(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  const { pid = -1 } = child;
  const cpuSeconds = () => (child.exitCode === null && child.signalCode === null ? mainThreadCpuSeconds(pid) : 0);
  const before = cpuSeconds();
  const watch = setInterval(() => {
    if (cpuSeconds() - before < MAX_ENDING_CPU_SECONDS) return;
    clearInterval(watch);
    child.kill('SIGKILL');
    child.emit('error', new Error(`the hub used ${MAX_ENDING_CPU_SECONDS} s of processor time and did not end`));
  }, 500);
  try {
    await ended;
  } finally {
    clearInterval(watch);
  }
}

/** Starts a pairing. @returns the authorize URL */
export async function startPairing(control: ControlClient, name: string): Promise<URL> {
  return new URL((await waitingPairing(control, name)).authorize_url);
}

async function waitingPairing(control: ControlClient, name: string) {
  const { pairing } = await control.request('pair', { name });
  const reports = control.followPairing(pairing, new AbortController().signal);
  for await (const report of reports) if (report.event === 'waiting') return report;
  throw new Error(`the pairing of ${name} ended before it had a link`);
}

/** The `state` parameter of a link. */
export function stateParameterOf(authorizeUrl: URL | string | undefined): string {
  return new URL(authorizeUrl ?? 'no:link').searchParams.get('state') ?? '';
}

/** Runs the command line. */
export async function runLatchkey(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ProcessResult> {
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout, stderr };
}

/** The most processor time that stopping a daemon may take, in seconds. */
const MAX_ENDING_CPU_SECONDS = 20;

/**
 * Calls `look` until it returns a value.
 * @param seconds the longest time that it takes on a quiet machine
 * @param interval between two calls, in ms
 */
export async function eventually<Result>(
  look: () => Promise<Result | null | undefined | false>,
  seconds = 15,
  interval = 100,
): Promise<Result> {
  const deadline = performance.now() + scaleDeadline(seconds * 1000);
  do {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    await sleep(interval);
  } while (performance.now() < deadline);
  throw new Error(`the condition was not met within ${scaleDeadline(seconds)} s`);
}

/** Ports of this range that Chromium blocks (`net/base/port_util.cc`). */
const CLOSED_TO_BROWSERS: readonly number[] = [10_080];

/** Below the system's ephemeral ports: a hub that is restarted must find its own ports free. */
const PORTS = { first: 10_000, each: 2700, workers: 8 };
/** Each worker of a run has its own range and uses its ports in turn, so two hubs never get the same. */
const ownPorts = PORTS.first + PORTS.each * (Number(process.env['VITEST_POOL_ID'] ?? 0) % PORTS.workers);
let taken = randomInt(PORTS.each);

/** Reserves a port that stays free for a server that is stopped and restarted there. */
export async function reservePort(): Promise<number> {
  for (;;) {
    taken += 1;
    const port = ownPorts + (taken % PORTS.each);
    if (CLOSED_TO_BROWSERS.includes(port)) continue;
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (free) return port;
  }
}
