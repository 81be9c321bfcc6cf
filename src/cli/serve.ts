import { flushCompileCache } from 'node:module';
import { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { Failure, type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { Reloads } from '../daemon/reloads.ts';
import type { Hub } from '../hub/hub.ts';
import { urlHost } from '../system/addresses.ts';
import type { ServiceManager } from '../system/service-manager.ts';
import { endOnCrash, showStacks } from './terminal/crash.ts';
import { fail, notice } from './terminal/output.ts';
import { onHangup, untilSignal } from './terminal/signals.ts';

interface ServeOptions {
  readonly config?: string;
  readonly testMode?: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/** `latchkey serve` */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the hub in the foreground')
    .option('--test-mode', 'with a portal emulator in the same process; keeps nothing when it ends')
    .addOption(
      new Option('--log-level <level>', 'how much is logged')
        .choices(['debug', 'info', 'warn', 'error'])
        .default('info'),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ServeOptions>();
      const { isJournal } = await import('../system/log.ts');
      const { ServiceManager } = await import('../system/service-manager.ts');
      const service = new ServiceManager();
      try {
        await serve(options, service);
      } catch (error) {
        // <3>: to the journal it is an error (sd-daemon(3)).
        const why = messageOf(error) + (await hintOfOtherHub(error, options));
        fail(why, exitStatusOf(error, service.listens), isJournal() ? '<3>' : '');
        showStacks(error);
      }
    });
}

async function serve(options: ServeOptions, service: ServiceManager): Promise<void> {
  process.umask(0o077);
  let reload: () => void = () => undefined;
  const ending = untilSignal(onHangup(() => reload()));
  await using parts = new AsyncDisposableStack();
  const { createLog } = await import('../system/log.ts');
  const log = createLog(options.logLevel);
  endOnCrash(log);
  const { listeningSockets, runDaemon } = await import('../daemon/daemon.ts');
  const configuration = await configure(options, parts, log);
  const reloads = options.testMode === true ? undefined : await reloadsOf(configuration, options);
  reload = () => {
    if (reloads === undefined) log.warn('reload_unavailable');
    else void reloads.ask(log);
  };
  const sockets = parts.use(await listeningSockets(process.env, process.pid));
  await runDaemon({
    configuration,
    log,
    sockets,
    service,
    reloads,
    ending,
    async onUp(hub) {
      // Not only at an orderly end: many a hub has none but a power cut.
      flushCompileCache();
      if (options.testMode === true) notice(await whereToTry(hub, configuration));
    },
  });
}

/** Where a port is taken and a hub runs on this machine, it is likely to be the one that has it. */
async function hintOfOtherHub(error: unknown, { config }: ServeOptions): Promise<string> {
  if (!(error instanceof Failure && error.code === 'port_unavailable')) return '';
  const [{ controlSockets }, { probeSocket }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../control/find-hub.ts'),
  ]);
  for (const path of await controlSockets(config, process.env)) {
    if ((await probeSocket(path)) === 'alive') return `; a hub is running here already (its control socket is ${path})`;
  }
  return '';
}

/** A SIGHUP that came before was there when the configuration was read. */
async function reloadsOf(running: Configuration, { config }: ServeOptions): Promise<Reloads> {
  const [{ loadConfiguration, requirePortal }, { Reloads }, { systemRandom }] = await Promise.all([
    import('../configuration/configuration.ts'),
    import('../daemon/reloads.ts'),
    import('../system/random.ts'),
  ]);
  const read = async () => requirePortal(await loadConfiguration(config, process.env));
  return new Reloads(running, read, () => systemRandom.uuid());
}

/** What an appliance's developer needs, under the names of docs/appliances.md, as a line for a shell. */
async function whereToTry({ administration }: Hub, { portals }: Configuration): Promise<string> {
  const { hub } = await administration.status();
  const address = hub.address ?? '127.0.0.1';
  const host = urlHost(address);
  const variables = [
    `HUB=https://${host}:${hub.httpsPort}`,
    `HUB_HTTP=http://${host}:${hub.httpPort}`,
    `PIN=${hub.caFingerprint}`,
    ...portals.slice(0, 1).map(({ baseUrl }) => `CLOUD=${baseUrl}`),
  ];
  const page = `The installer's page is at https://${host}:${hub.httpsPort}/; "latchkey setup-code" shows the code that opens it.`;
  return `${page}\nTo try an appliance:\n\n  export ${variables.join(' ')}\n`;
}

/** @param parts what is started beside the hub is disposed of with these */
async function configure(options: ServeOptions, parts: AsyncDisposableStack, log: Log): Promise<Configuration> {
  const { loadConfiguration, requirePortal } = await import('../configuration/configuration.ts');
  const configuration = await loadConfiguration(options.config, process.env);
  if (options.testMode !== true) return requirePortal(configuration);
  const { startTestPortal } = await import('./test-hub.ts');
  const { emulator, user, changed } = await startTestPortal(parts, configuration, log);
  notice(
    `The portal emulator is at ${emulator.frontendUrl}: log in as ${user.name} with the password ${user.password}`,
  );
  return changed;
}

const FAILED = 1;
/** `EX_CONFIG` of sysexits(3); the unit's `RestartPreventExitStatus` names it. */
const EXIT_CONFIG = 78;

/** What a start with everything as it is would come upon again. */
const PERMANENT: ReadonlySet<FailureCode> = new Set([
  'config_invalid',
  'control_socket_taken',
  'port_unavailable',
  'state_dir_unusable',
  'store_key_wrong',
  'store_locked',
  'store_newer',
  'store_unreadable',
]);

/**
 * The exit status of a daemon that could not start.
 * @param supervised whether a service manager would start it again, for ever where nothing is said
 */
function exitStatusOf(error: unknown, supervised: boolean): number {
  return supervised && error instanceof Failure && PERMANENT.has(error.code) && !isTransient(error)
    ? EXIT_CONFIG
    : FAILED;
}

/** An address that this machine does not have may come with its network; a disk may have room again. */
function isTransient({ cause }: Failure): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EROFS', 'ENOSPC', 'EDQUOT', 'EIO'].includes(code);
}
