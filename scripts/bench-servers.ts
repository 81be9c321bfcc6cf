// The servers that the bench measures, each a process of its own on the first core.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const CLIENT = { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'bench-secret' };
const CREDENTIALS = `client_id=${CLIENT.id}&client_secret=${CLIENT.secret}`;

/** One server, as far as the load needs to know it. */
export interface Server extends AsyncDisposable {
  readonly name: string;
  /** From its start to its first word, in milliseconds. */
  readonly startUp: number;
  /** Processor time until then, in milliseconds. */
  readonly startCpu: number;
  readonly refresh: Target;
  /** Only where it has something like code/get. */
  readonly poll: Target | null;
  /** Resident memory, in MB. */
  memory(): number;
  /** Processor time used since its start, in milliseconds. */
  cpu(): number;
}

/** What the load asks for: see bench.d/load.js. */
export interface Target {
  readonly port: number;
  readonly path: string;
  readonly form: string;
  /** Of a good answer. */
  readonly status: number;
  readonly rotate: boolean;
  /** One a connection: a refresh token, or the path to get. */
  tokens: string[];
}

export const NAMES = ['emulator', 'oidc-provider', 'oauth2-mock-server', 'bare fastify'] as const;
export type ServerName = (typeof NAMES)[number];

/**
 * Starts a server and leads it to where `chains` connections can refresh.
 * @param caches the folder where compiled code is kept; the emulator alone looks there
 */
export async function startServer(name: ServerName, chains: number, caches: string): Promise<Server> {
  const before = performance.now();
  const child = spawn('taskset', ['-c', '0', process.execPath, ...command(name, chains)], {
    cwd: root,
    env: { ...process.env, XDG_CACHE_HOME: caches },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const said = await firstLine(child);
  const startUp = performance.now() - before;
  const pid = child.pid ?? 0;
  const startCpu = processorTime(pid);
  const targets = name === 'emulator' ? await emulatorTargets(said, chains) : peerTargets(said);
  return {
    name,
    startUp,
    startCpu,
    ...targets,
    memory: () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    cpu: () => processorTime(pid),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Starts the emulator once and ends it in good order, which is when it keeps its compiled code. */
export async function warmUp(caches: string): Promise<void> {
  const child = spawn(process.execPath, command('emulator', 0), {
    cwd: root,
    env: { ...process.env, XDG_CACHE_HOME: caches },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await firstLine(child);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Processor time of a process so far, in milliseconds. */
function processorTime(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

function command(name: ServerName, chains: number): string[] {
  if (name === 'emulator') {
    const client = ['--client', `${CLIENT.id}:${CLIENT.secret}`];
    return ['dist/main.js', 'emulator', '--json', ...client, '--auto-login', '--code-lifetime', '1h'];
  }
  return [`scripts/bench.d/${name.replace(' ', '-')}.js`, CLIENT.id, CLIENT.secret, String(chains)];
}

async function firstLine(child: ChildProcess): Promise<Readonly<Record<string, unknown>>> {
  if (child.stdout === null) throw new Error('no output to read');
  for await (const line of createInterface({ input: child.stdout })) {
    return JSON.parse(line) as Record<string, unknown>;
  }
  throw new Error('it ended without a word; its modules are missing?');
}

type Targets = Pick<Server, 'refresh' | 'poll'>;

function peerTargets(said: Readonly<Record<string, unknown>>): Targets {
  const { port, path, poll, tokens } = said as { port: number; path: string; poll?: string; tokens: string[] };
  const common = { port, path, form: `grant_type=refresh_token&${CREDENTIALS}`, status: 200 };
  return {
    refresh: { ...common, rotate: true, tokens },
    poll: poll === undefined ? null : { ...common, rotate: false, tokens: tokens.map(() => poll) },
  };
}

/** Logs in once a chain, as clients do; what is polled then is a login that nobody has done. */
async function emulatorTargets(said: Readonly<Record<string, unknown>>, chains: number): Promise<Targets> {
  const { base_url, frontend_url } = said as { base_url: string; frontend_url: string };
  const config = async () => {
    const answer = await fetch(`${base_url}/external/oauth2helper/config/${CLIENT.id}`, { method: 'POST' });
    return (await answer.json()) as { authorize_url: string; code_url: string };
  };
  const tokens: string[] = [];
  const polls: string[] = [];
  for (let i = 0; i < chains; i += 1) {
    const { authorize_url, code_url } = await config();
    await fetch(authorize_url);
    const { code } = (await (await fetch(code_url)).json()) as { code: string };
    const body = `grant_type=authorization_code&code=${code}&${CREDENTIALS}`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await fetch(`${frontend_url}/sso/token`, { method: 'POST', headers, body });
    tokens.push(((await answer.json()) as { refresh_token: string }).refresh_token);
    const waiting = new URL((await config()).code_url);
    polls.push(waiting.pathname + waiting.search);
  }
  const form = `grant_type=refresh_token&${CREDENTIALS}`;
  return {
    refresh: { port: Number(new URL(frontend_url).port), path: '/sso/token', form, status: 200, rotate: true, tokens },
    poll: { port: Number(new URL(base_url).port), path: '', form: '', status: 404, rotate: false, tokens: polls },
  };
}
