import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LOAD_CORE, processorTime, startProgram } from '../program.ts';
import { type HubServer, type OidcProvider, PROVIDER_CLIENT } from './servers.ts';

const run = promisify(execFile);
/** What the agent calls its account. */
const ACCOUNT = 'bench';

/** Gives a token to a program that is started for it. */
export interface TokenCommand {
  readonly name: string;
  /** Prints a token, or the answer that it is in. */
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** What is in its output where it is good. */
  readonly expected: RegExp;
  /** Processor time of whom it asks, in ms. */
  cpu(): number;
}

/**
 * Debian's oidc-agent with an account at a provider, set up without a person; asked for its token it gives the one at hand.
 * @param home a folder of its own, which is there afterwards @param ca the file with the provider's CA
 */
export async function startOidcAgent(
  provider: OidcProvider,
  home: string,
  ca: string,
): Promise<TokenCommand & AsyncDisposable> {
  await mkdir(home, { recursive: true });
  const env = { PATH: process.env['PATH'], HOME: home, BENCH_PASSWORD: 'bench' };
  const socket = join(home, 'agent');
  // It says where it listens when the buffer of its output is full, else.
  const command = ['stdbuf', '-oL', 'oidc-agent', '--console', `--socket-path=${socket}`];
  await using started = new AsyncDisposableStack();
  const agent = await startProgram(command, { env, ready: (line) => line.startsWith('OIDC_SOCK=') });
  started.defer(() => agent.end('SIGTERM'));
  const client = { ...env, OIDC_SOCK: socket };
  const set = {
    issuer: `https://127.0.0.1:${provider.port}/`,
    'client-id': PROVIDER_CLIENT.client_id,
    'client-secret': PROVIDER_CLIENT.client_secret,
    rt: provider.refreshToken,
    scope: 'openid offline_access Monitoring',
    'redirect-uri': 'http://localhost:4242',
    'pw-env': 'BENCH_PASSWORD',
    cp: ca,
    prompt: 'none',
  };
  const options = Object.entries(set).map(([name, value]) => `--${name}=${value}`);
  await run('oidc-gen', [ACCOUNT, '--manual', '--confirm-default', ...options], { env: client, timeout: 30_000 });
  const resources = started.move();
  return {
    name: 'oidc-agent',
    command: ['oidc-token', ACCOUNT],
    env: client,
    expected: /^[\w-]{20,}\n$/,
    cpu: () => family(agent.pid).reduce((sum, pid) => sum + processorTime(pid), 0),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** The first request of README.md: the secret is in a file, where no other process sees it. */
export function curl(hub: HubServer, folder: string): TokenCommand {
  const [ca, credentials] = ['ca.pem', 'curl'].map((name) => join(folder, `${hub.port}-${name}`)) as [string, string];
  writeFileSync(ca, hub.ca);
  writeFileSync(credentials, `user = "${hub.clientId}:${hub.clientSecret}"\n`, { mode: 0o600 });
  const options = ['--silent', '--cacert', ca, '--config', credentials, '--data', 'grant_type=client_credentials'];
  return {
    name: hub.name,
    command: ['curl', ...options, hub.tokenEndpoint],
    env: { PATH: process.env['PATH'] },
    expected: /"access_token":"[^"]{20,}"/,
    cpu: () => hub.cpu(),
  };
}

/** Runs a command on the load's core, to its end. @returns how long that took, in ms @throws Error where it gives no token */
export async function timed({ name, command, env, expected }: TokenCommand): Promise<number> {
  const began = performance.now();
  const { stdout } = await run('taskset', ['-c', String(LOAD_CORE), ...command], { env, timeout: 30_000 });
  const took = performance.now() - began;
  if (!expected.test(stdout)) throw new Error(`${name}: ${command[0]} gave no token`);
  return took;
}

/** A process and its children: the agent is one that keeps the secrets and one that is spoken to. */
function family(pid: number): number[] {
  const children = readFileSync(join('/proc', String(pid), 'task', String(pid), 'children'), 'utf8');
  return [
    pid,
    ...children
      .split(' ')
      .filter(Boolean)
      .flatMap((child) => family(Number(child))),
  ];
}
