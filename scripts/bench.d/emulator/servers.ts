import { join } from 'node:path';
import type { Chain } from '../load.ts';
import { type Program, processorTime, residentMemory, startProgram } from '../program.ts';
import type { Subject } from '../suite.ts';

const PEERS = join(import.meta.dirname, '../peers');
const CLIENT = { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'bench-secret' };
const CREDENTIALS = `client_id=${CLIENT.id}&client_secret=${CLIENT.secret}`;

/** One server, as far as the load needs to know it. */
export interface Server extends Program {
  readonly name: string;
  readonly refresh: Target;
  /** Only where it has something like code/get. */
  readonly poll: Target | null;
  /** Resident memory, in MB. */
  memory(): number;
  /** Processor time used since its start, in milliseconds. */
  cpu(): number;
}

/** What the load asks for. */
interface Target {
  readonly port: number;
  /** Of a good answer. */
  readonly status: number;
  /** One a connection. */
  chains: readonly Chain[];
}

/** What it is measured beside. */
export const PEER_NAMES = ['oidc-provider', 'oauth2-mock-server', 'bare fastify'] as const;

/**
 * Starts a server and leads it to where `chains` connections can refresh.
 * @param which a build whose emulator it is, or a peer
 * @param caches the folder where compiled code is kept; the emulator alone looks there
 */
export async function startServer(
  which: Subject | (typeof PEER_NAMES)[number],
  chains: number,
  caches: string,
): Promise<Server> {
  const env = { ...process.env, XDG_CACHE_HOME: caches };
  const program = await startProgram([process.execPath, ...command(which, chains)], { env, ready: isJson });
  const said = JSON.parse(program.said) as Readonly<Record<string, unknown>>;
  const { pid } = program;
  return {
    ...program,
    name: typeof which === 'string' ? which : which.name,
    ...(typeof which === 'string' ? peerTargets(said) : await emulatorTargets(said, chains)),
    memory: () => residentMemory(pid).all,
    cpu: () => processorTime(pid),
  };
}

/** Starts the emulator once and ends it in good order, which is when it keeps its compiled code. */
export async function warmUp(subject: Subject, caches: string): Promise<void> {
  await using program = await startProgram([process.execPath, ...command(subject, 0)], {
    env: { ...process.env, XDG_CACHE_HOME: caches },
  });
  await program.end('SIGTERM');
}

/** The line in which a server says where it listens, whatever it says before. */
function isJson(line: string): boolean {
  return line.startsWith('{');
}

function command(which: Subject | (typeof PEER_NAMES)[number], chains: number): string[] {
  if (typeof which !== 'string') {
    const client = ['--client', `${CLIENT.id}:${CLIENT.secret}`];
    const main = join(which.root, 'dist/main.js');
    return [main, 'emulator', '--json', ...client, '--auto-login', '--code-lifetime', '1h'];
  }
  return [join(PEERS, `${which.replace(' ', '-')}.js`), CLIENT.id, CLIENT.secret, String(chains)];
}

type Targets = Pick<Server, 'refresh' | 'poll'>;

function peerTargets(said: Readonly<Record<string, unknown>>): Targets {
  const { port, path, poll, tokens } = said as { port: number; path: string; poll?: string; tokens: string[] };
  return {
    refresh: refreshOf(port, path, tokens),
    poll: poll === undefined ? null : { port, status: 200, chains: tokens.map(() => get(poll)) },
  };
}

/** Refreshes, each with the token that the answer before gave. */
function refreshOf(port: number, path: string, tokens: readonly string[]): Target {
  const request = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n`;
  const form = `grant_type=refresh_token&${CREDENTIALS}`;
  return { port, status: 200, chains: tokens.map((token) => ({ request, form, token })) };
}

function get(path: string): Chain {
  return { request: `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n` };
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
  return {
    refresh: refreshOf(Number(new URL(frontend_url).port), '/sso/token', tokens),
    poll: { port: Number(new URL(base_url).port), status: 404, chains: polls.map(get) },
  };
}
