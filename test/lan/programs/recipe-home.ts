import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Emulator } from '../../../src/emulator/index.ts';
import { readExamples } from '../../emulator/examples/guide.ts';
import { eventually, HubProcess, reservePort } from '../../support/hub-process.ts';
import { logFile } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { MAIN, SHARED_CACHE } from '../../support/program.ts';

const PAGE = 'docs/programs.md';
/** In seconds. golang.org/x/oauth2 requests a token 10 s before the last one expires. */
const TOKEN_LIFETIME = 14;
const CONNECTION = 'heating';
const MONTH = 30 * 86_400;

/** A program of docs/programs.md, set up by its section. */
export interface Recipe {
  /** The heading of its section. */
  readonly heading: string;
  /** What the section says that makes the program trust the hub; none for a program that runs on the hub's machine. */
  readonly trust?: string;
  /** What this machine lacks for the program; null if it has everything. */
  skipReason(): Promise<string | null> | string | null;
  /** Starts the program, which then asks the cloud repeatedly. */
  start(kitchen: Kitchen): Promise<AsyncDisposable>;
  /** The response of the cloud to a request with a valid token; default: a temperature. */
  answer?(request: IncomingMessage, response: ServerResponse): unknown;
}

/** What a recipe is made with: the page, with the names, addresses and files of a test. */
export interface Kitchen {
  readonly folder: string;
  /** The credentials of the program. */
  readonly id: string;
  readonly secret: string;
  /** The recipe's `trust`; null on the hub's machine. */
  readonly trust: string | null;
  /** The blocks in a language of the section, or of another one. */
  blocks(language: string, heading?: string): string[];
  /** @returns the path of the written file, which only its user may read */
  write(name: string, text: string): Promise<string>;
  /** Starts a program. Its output goes to a log. */
  spawn(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): AsyncDisposable;
  /** Runs a program once a second. */
  repeat(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): AsyncDisposable;
}

/** A hub with a connection at a portal, and a cloud that accepts the tokens of the portal. */
export class RecipeHome implements AsyncDisposable {
  readonly emulator: Emulator;
  readonly hub: HubProcess;
  readonly #localPort: number;
  readonly #folder: string;

  private constructor(emulator: Emulator, hub: HubProcess, localPort: number, folder: string) {
    this.emulator = emulator;
    this.hub = hub;
    this.#localPort = localPort;
    this.#folder = folder;
  }

  static async start(): Promise<RecipeHome> {
    const emulator = await startPortal({ tokenLifetime: TOKEN_LIFETIME });
    const localPort = await reservePort();
    const hub = await HubProcess.start({ emulator, toml: `[local]\nport = ${localPort}` });
    // Without a space in its name, unlike the other folders of tests: the page has none in its paths either.
    const folder = await mkdtemp(join(tmpdir(), 'lk-'));
    await hub.addConnection(CONNECTION);
    await hub.pair(CONNECTION, emulator);
    const command = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@" --config '${hub.directory}/latchkey.toml'\n`;
    await writeFile(join(folder, 'latchkey'), command, { mode: 0o755 });
    return new RecipeHome(emulator, hub, localPort, folder);
  }

  /**
   * Starts a program by its recipe, and waits for its first token: some end if there is no hub when they begin.
   * @param place `elsewhere`: as on another machine, over HTTPS
   */
  async start(recipe: Recipe, place: 'local' | 'elsewhere'): Promise<RunningRecipe> {
    const name = `${recipe.heading.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}-${place}`;
    const { client_id, client_secret } = await this.hub.addAppliance(name, null, null, CONNECTION);
    const cloud = await Cloud.open(this.emulator, recipe);
    const folder = join(this.#folder, name);
    await mkdir(folder);
    const ca = join(folder, 'latchkey-ca.pem');
    const elsewhere = `https://127.0.0.1:${this.hub.httpsPort}`;
    const replacements: [string | RegExp, string][] = [
      ['http://127.0.0.1:8481', place === 'local' ? `http://127.0.0.1:${this.#localPort}` : elsewhere],
      ['https://192.168.1.20:8443', elsewhere],
      ['https://api.cloud.example', `http://${cloud.host}`],
      ['scheme: https', 'scheme: http'],
      ['api.cloud.example', cloud.host],
      ['CLIENT_ID', client_id],
      ['CLIENT_SECRET', client_secret],
      [/(?:\/etc|\/var\/lib|\/usr\/local\/bin)(?:\/prometheus)?\/((?:heating|latchkey-ca)[\w.]*)/g, `${folder}/$1`],
    ];
    const fill = (text: string) => replacements.reduce((filled, [from, to]) => filled.replaceAll(from, to), text);
    const env = {
      PATH: `${this.#folder}:${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: folder,
      XDG_CACHE_HOME: SHARED_CACHE,
    };
    const kitchen: Kitchen = {
      ...{ folder, id: client_id, secret: client_secret },
      trust: place === 'elsewhere' && recipe.trust !== undefined ? fill(recipe.trust) : null,
      blocks: (language, heading = recipe.heading) => readExamples(heading, language, PAGE).map(fill),
      async write(file, text) {
        const path = join(folder, file);
        await writeFile(path, text, { mode: 0o700 });
        return path;
      },
      spawn: (command, args, more) => startProgram(name, folder, command, args, { ...env, ...more }),
      repeat: (command, args, more) => repeatProgram(name, folder, command, args, { ...env, ...more }),
    };
    const launch = async () => {
      await writeFile(ca, (await this.hub.authority()).certificate);
      return recipe.start(kitchen);
    };
    const running = new RunningRecipe(recipe, cloud, launch, await launch());
    await running.servedAnew();
    return running;
  }

  /**
   * Kills the hub as a power cut does and starts it again, replaces its CA, starts the programs again with the new one, and ends the
   * old one. After each step the programs get tokens that they did not have before.
   * @throws Error if a program does not
   */
  async runCycle(programs: readonly RunningRecipe[]): Promise<void> {
    await this.hub.kill();
    await this.hub.launch();
    await this.#refresh(programs);
    await this.hub.ask((control) => control.request('rotateAuthority', { keep: MONTH }));
    await this.#refresh(programs);
    for (const program of programs) await program.restart();
    await this.hub.ask((control) => control.request('keepOldAuthority', { keep: 0 }));
    await this.#refresh(programs);
  }

  async #refresh(programs: readonly RunningRecipe[]): Promise<void> {
    await this.hub.ask((control) => control.request('refresh', { name: CONNECTION }));
    await Promise.all(programs.map((program) => program.servedAnew()));
  }

  /** The number of logins at the portal so far, of which one was before the first program. */
  get logins(): number {
    return this.emulator.grants().length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub[Symbol.asyncDispose]();
    await this.emulator.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A program that runs by its recipe, and the cloud that it asks. */
export class RunningRecipe implements AsyncDisposable {
  readonly recipe: Recipe;
  readonly #cloud: Cloud;
  readonly #launch: () => Promise<AsyncDisposable>;
  #program: AsyncDisposable;

  constructor(recipe: Recipe, cloud: Cloud, launch: () => Promise<AsyncDisposable>, program: AsyncDisposable) {
    this.recipe = recipe;
    this.#cloud = cloud;
    this.#launch = launch;
    this.#program = program;
  }

  /** The different tokens that the cloud has accepted from the program. */
  get accepted(): ReadonlySet<string> {
    return this.#cloud.accepted;
  }

  /** How many requests of the program the cloud has refused. */
  get refused(): number {
    return this.#cloud.refused;
  }

  /** Waits until the cloud has accepted a token from the program that it had not before. */
  async servedAnew(): Promise<void> {
    const before = this.accepted.size;
    await eventually(async () => this.accepted.size > before, 60);
  }

  /** Starts the program again, with the present CA. */
  async restart(): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
    this.#program = await this.#launch();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
    await this.#cloud[Symbol.asyncDispose]();
  }
}

/** The cloud of one program. It asks the emulator whether a token is valid. */
class Cloud implements AsyncDisposable {
  readonly accepted = new Set<string>();
  refused = 0;
  readonly #emulator: Emulator;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #answer: NonNullable<Recipe['answer']>;

  private constructor(emulator: Emulator, { answer }: Recipe) {
    this.#emulator = emulator;
    this.#answer = answer ?? ((_request, response) => response.end('{"temperature":21.5,"power":840}'));
  }

  static async open(emulator: Emulator, recipe: Recipe): Promise<Cloud> {
    const cloud = new Cloud(emulator, recipe);
    cloud.#server.listen(0, '127.0.0.1');
    await once(cloud.#server, 'listening');
    return cloud;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization = '' } = request.headers;
    const { status } = await fetch(`${this.#emulator.baseUrl}/api/whoami`, { headers: { authorization } });
    if (status === 200) {
      this.accepted.add(authorization);
      this.#answer(request, response);
    } else {
      this.refused += 1;
      response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await this.#server[Symbol.asyncDispose]();
  }
}

function startProgram(
  name: string,
  cwd: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): AsyncDisposable & { readonly ended: Promise<unknown> } {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const log = createWriteStream(logFile(name), { mode: 0o600 });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const ended = once(child, 'close').finally(() => log.end());
  return {
    ended,
    async [Symbol.asyncDispose]() {
      child.kill();
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(late);
    },
  };
}

function repeatProgram(...program: Parameters<typeof startProgram>): AsyncDisposable {
  const stop = new AbortController();
  const loop = async () => {
    while (!stop.signal.aborted) {
      await startProgram(...program).ended;
      await sleep(1000, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const ended = loop();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}
