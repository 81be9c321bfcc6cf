import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { scaleDeadline } from './deadlines.ts';

const run = promisify(execFile);
const IP = '/usr/sbin/ip';

/** A home network on this machine: hosts in their own network namespaces, joined by a bridge in another one. */
export interface Lan<Name extends string> extends AsyncDisposable {
  readonly hosts: Readonly<Record<Name, Host>>;
  /** Connects a host to this network with one more interface; the host may be one of another network. */
  attach(host: Host, name: string): Promise<Cable>;
}

/** The connection of a host's interface to a network. */
interface Cable {
  /** The host's IPv4 address on it, `10.77.0.x/24`. */
  readonly address: string;
  /** Its unique local IPv6 address. */
  readonly address6: string;
  /** Disconnects or reconnects it. */
  plug(state: 'up' | 'down'): Promise<void>;
  /** Isolated cables do not reach each other, but all others on the network. */
  isolate(state: 'on' | 'off'): Promise<void>;
}

/** A machine; its first interface is `eth0`. */
export interface Host extends Cable {
  /** Its name on its LAN. */
  readonly name: string;
  /** The name of its network namespace. */
  readonly namespace: string;
  /** Starts a program on this host; it ends with the network. */
  spawn(command: string, args: readonly string[], options?: { env?: NodeJS.ProcessEnv; cwd?: string }): Process;
  /** Runs a program on this host to its end and returns its stdout. */
  run(command: string, args: readonly string[], options?: { env?: NodeJS.ProcessEnv }): Promise<string>;
}

/** A running program. */
export interface Process {
  readonly child: ChildProcess;
  /** Its output so far, stdout and stderr; of a program that writes more than 16 MB the newest part. */
  readonly output: string;
  /**
   * The result of `pick` for the first line of stdout (of the newest 50,000) for which it returns a value.
   * @throws Error with all output if no such line comes in time or the program ends before
   */
  line<T>(pick: (line: string) => T | undefined, within?: number): Promise<T>;
  /** The same for stderr. */
  errorLine<T>(pick: (line: string) => T | undefined, within?: number): Promise<T>;
  /** Waits for it to exit, at most `within` ms (then SIGKILL); returns the exit code, or null if a signal ended it. */
  end(within: number): Promise<number | null>;
  /** Sends a signal (SIGTERM) and waits for the exit, then SIGKILL. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** The number of LANs that this process has created: names must be unique on the machine. */
let made = 0;

/**
 * Why no LAN can be created here; null if one can. Tests pass it to `ctx.skip`, so that it is reported.
 * @param tools that the test runs besides `ip`, as absolute paths
 */
export async function lanSkipReason(tools: readonly string[] = []): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  for (const tool of [IP, ...tools]) {
    const missing = await access(tool, constants.X_OK).then(
      () => false,
      () => true,
    );
    if (missing) return `${tool} is missing`;
  }
  whyNoNamespaces ??= tryNamespace();
  return whyNoNamespaces;
}

let whyNoNamespaces: Promise<string | null> | null = null;

async function tryNamespace(): Promise<string | null> {
  const probe = `latchkey-${process.pid}-${made++}-probe`;
  try {
    await ip([], `netns add ${probe}`, `netns del ${probe}`);
    return null;
  } catch (error) {
    return `no network namespaces here: ${error instanceof Error ? error.message.trim() : error}`;
  }
}

/**
 * Creates a LAN with these hosts. It can't reach the machine's own network. Disposal ends all of it.
 * @param number of the network: its addresses are `10.<number>.0.x` and `fd<number>::x`
 */
export async function createLan<const Name extends string>(names: readonly Name[], number = 77): Promise<Lan<Name>> {
  const prefix = `latchkey-${process.pid}-${made++}`;
  const bridge = `${prefix}-bridge`;
  const resources = new AsyncDisposableStack();
  const hosts: Partial<Record<Name, Host>> = {};
  let ports = 0;
  const connect = (namespace: string, name: string) =>
    connectCable({ namespace, name, bridge, network: number, port: ++ports });
  try {
    const namespaces = [bridge, ...names.map((name) => `${prefix}-${name}`)];
    resources.defer(() => ip(['-force'], ...namespaces.map((namespace) => `netns del ${namespace}`)));
    await ip([], ...namespaces.map((namespace) => `netns add ${namespace}`));
    await ip(['-n', bridge], 'link add br0 type bridge mcast_snooping 0', 'link set br0 up', 'link set lo up');
    for (const name of names) {
      const namespace = `${prefix}-${name}`;
      hosts[name] = hostIn(resources, { name, namespace }, await connect(namespace, 'eth0'));
    }
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
  return {
    hosts: complete(hosts, names),
    attach: ({ namespace }, name) => connect(namespace, name),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Connects a new interface in a namespace to the bridge. */
async function connectCable(options: {
  readonly namespace: string;
  readonly name: string;
  readonly bridge: string;
  readonly network: number;
  readonly port: number;
}): Promise<Cable> {
  const { namespace, name, bridge, network, port: number } = options;
  const address = `10.${network}.0.${number}`;
  const address6 = `fd${network}::${number}`;
  const port = `port${number}`;
  await ip(
    ['-n', bridge],
    `link add ${port} type veth peer name ${name} netns ${namespace}`,
    `link set ${port} master br0 up`,
  );
  await ip(
    ['-n', namespace],
    'link set lo up',
    `addr add ${address}/24 dev ${name}`,
    `addr add ${address6}/64 dev ${name} nodad`,
    `link set ${name} up`,
    `route append 224.0.0.0/4 dev ${name}`,
  );
  return {
    address,
    address6,
    plug: (state) => ip(['-n', bridge], `link set ${port} ${state}`),
    isolate: (state) => ip(['-n', bridge], `link set ${port} type bridge_slave isolated ${state}`),
  };
}

function hostIn(
  resources: AsyncDisposableStack,
  { name, namespace }: Pick<Host, 'name' | 'namespace'>,
  cable: Cable,
): Host {
  // `ip netns exec` becomes the program, so a child's pid is the program's own.
  const inside = (command: string, args: readonly string[]) => ['netns', 'exec', namespace, command, ...args];
  return {
    ...cable,
    name,
    namespace,
    spawn(command, args, options = {}) {
      const child = spawn(IP, inside(command, args), { stdio: 'pipe', ...options });
      const process = watch(child, `${command} ${args.join(' ')}`);
      resources.defer(async () => void (await process.stop('SIGTERM')));
      return process;
    },
    async run(command, args, options = {}) {
      return (
        await run(IP, inside(command, args), { timeout: scaleDeadline(10_000), killSignal: 'SIGKILL', ...options })
      ).stdout;
    },
  };
}

/** How much of the output of a program is kept, in characters: some run for hours. The newest part. */
const MAX_OUTPUT = 16 * 1024 * 1024;
const MAX_LINES = 50_000;

function watch(child: ChildProcess, title: string): Process {
  let output = '';
  const ended = new Promise<void>((resolve) => child.once('close', resolve).once('error', resolve));
  child.once('error', (error) => {
    output += `${error}\n`;
  });
  const reader = (stream: NodeJS.ReadableStream | null) => {
    const seen: string[] = [];
    const listeners = new Set<(line: string) => void>();
    if (stream !== null) {
      createInterface(stream).on('line', (line) => {
        output += `${line}\n`;
        if (output.length > 2 * MAX_OUTPUT) output = output.slice(-MAX_OUTPUT);
        seen.push(line);
        if (seen.length > 2 * MAX_LINES) seen.splice(0, MAX_LINES);
        for (const listener of [...listeners]) listener(line);
      });
    }
    return async <T>(pick: (line: string) => T | undefined, within = scaleDeadline(10_000)): Promise<T> => {
      const { promise, resolve } = Promise.withResolvers<T>();
      const listener = (line: string) => {
        const picked = pick(line);
        if (picked !== undefined) resolve(picked);
      };
      listeners.add(listener);
      seen.forEach(listener);
      const timer = new AbortController();
      try {
        const late = sleep(within, 'in time', { signal: timer.signal });
        const missed = Promise.race([ended.then(() => 'before it exited'), late]).then((when) => {
          throw new Error(`${title} did not print the line ${when}. Its output:\n${output}`);
        });
        return await Promise.race([promise, missed]);
      } finally {
        listeners.delete(listener);
        timer.abort();
      }
    };
  };
  async function end(within: number): Promise<number | null> {
    const killTimer = setTimeout(() => child.kill('SIGKILL'), within);
    await ended;
    clearTimeout(killTimer);
    return child.exitCode;
  }
  return {
    child,
    get output() {
      return output;
    },
    line: reader(child.stdout),
    errorLine: reader(child.stderr),
    end,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return end(scaleDeadline(5000));
    },
  };
}

/** Runs commands of ip(8) in one process. */
async function ip(options: readonly string[], ...commands: readonly string[]): Promise<void> {
  const running = run(IP, [...options, '-batch', '-'], { timeout: scaleDeadline(10_000) });
  running.child.stdin?.end(`${commands.join('\n')}\n`);
  await running;
}

function complete<Name extends string>(hosts: Partial<Record<Name, Host>>, names: readonly Name[]): Record<Name, Host> {
  const missing = names.find((name) => hosts[name] === undefined);
  if (missing !== undefined) throw new Error(`${missing} was not created`);
  return hosts as Record<Name, Host>;
}
