import { flushCompileCache } from 'node:module';
import { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { Failure, type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { ReloadCoordinator } from '../daemon/reloads.ts';
import type { Hub } from '../hub/hub.ts';
import { urlHost } from '../system/addresses.ts';
import type { SystemdNotifier } from '../system/systemd-notifier.ts';
import { installDaemonCrashHandler, printStackTraces } from './terminal/crash.ts';
import { printStderr, reportFailure } from './terminal/output.ts';
import { onHangup, waitForTerminationSignal } from './terminal/signals.ts';

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
      const { isStderrJournal: isJournal } = await import('../system/log.ts');
      const { SystemdNotifier } = await import('../system/systemd-notifier.ts');
      const service = new SystemdNotifier();
      try {
        await serve(options, service);
      } catch (error) {
        // <3>: to the journal it is an error (sd-daemon(3)).
        const why = messageOf(error) + (await otherHubHint(error, options));
        reportFailure(why, exitStatusOf(error, service.isAvailable), isJournal() ? '<3>' : '');
        printStackTraces(error);
      }
    });
}

async function serve(options: ServeOptions, service: SystemdNotifier): Promise<void> {
  process.umask(0o077);
  let reload: () => void = () => undefined;
  const ending = waitForTerminationSignal(onHangup(() => reload()));
  await using parts = new AsyncDisposableStack();
  const { createLog } = await import('../system/log.ts');
  const log = createLog(options.logLevel);
  installDaemonCrashHandler(log);
  const { openListeningSockets: listeningSockets, runDaemon } = await import('../daemon/daemon.ts');
  const configuration = await loadServeConfiguration(options, parts, log);
  const reloads = options.testMode === true ? undefined : await createReloads(configuration, options);
  reload = () => {
    if (reloads === undefined) log.warn('reload_unavailable');
    else void reloads.request(log);
  };
  const sockets = parts.use(await listeningSockets(process.env, process.pid));
  await runDaemon({
    configuration,
    log,
    sockets,
    service,
    reloads,
    stopRequested: ending,
    async onHubStarted(hub) {
      // Not only at an orderly end: many a hub has none but a power cut.
      flushCompileCache();
      if (options.testMode === true) printStderr(await developerInstructions(hub, configuration));
    },
  });
}

/** Where a port is taken and a hub runs on this machine, it is likely to be the one that has it. */
async function otherHubHint(error: unknown, { config }: ServeOptions): Promise<string> {
  if (!(error instanceof Failure && error.code === 'port_unavailable')) return '';
  const [{ controlSocketCandidates: controlSockets }, { probeSocket }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../control/find-control-socket.ts'),
  ]);
  for (const path of await controlSockets(config, process.env)) {
    if ((await probeSocket(path)) === 'alive') return `; a hub is running here already (its control socket is ${path})`;
  }
  return '';
}

/** A SIGHUP that came before was there when the configuration was read. */
async function createReloads(running: Configuration, { config }: ServeOptions): Promise<ReloadCoordinator> {
  const [{ loadConfiguration, requirePortal }, { ReloadCoordinator }, { systemRandom }] = await Promise.all([
    import('../configuration/configuration.ts'),
    import('../daemon/reloads.ts'),
    import('../system/random.ts'),
  ]);
  const read = async () => requirePortal(await loadConfiguration(config, process.env));
  return new ReloadCoordinator(running, read, () => systemRandom.uuid());
}

/** What an appliance's developer needs, under the names of docs/appliances.md, as a line for a shell. */
async function developerInstructions({ administration }: Hub, { portals }: Configuration): Promise<string> {
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
async function loadServeConfiguration(
  options: ServeOptions,
  parts: AsyncDisposableStack,
  log: Log,
): Promise<Configuration> {
  const { loadConfiguration, requirePortal } = await import('../configuration/configuration.ts');
  const configuration = await loadConfiguration(options.config, process.env);
  if (options.testMode !== true) return requirePortal(configuration);
  const { startTestPortal } = await import('./test-mode.ts');
  const { emulator, user, changed } = await startTestPortal(parts, configuration, log);
  printStderr(
    `The portal emulator is at ${emulator.frontendUrl}: log in as ${user.name} with the password ${user.password}`,
  );
  return changed;
}

const EXIT_FAILURE = 1;
/** `EX_CONFIG` of sysexits(3); the unit's `RestartPreventExitStatus` names it. */
const EXIT_CONFIG = 78;

/** What a start with everything as it is would come upon again. */
const PERMANENT_FAILURES: ReadonlySet<FailureCode> = new Set([
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
  return supervised && error instanceof Failure && PERMANENT_FAILURES.has(error.code) && !isTransient(error)
    ? EXIT_CONFIG
    : EXIT_FAILURE;
}

/** An address that this machine does not have may come with its network; a disk may have room again. */
function isTransient({ cause }: Failure): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EROFS', 'ENOSPC', 'EDQUOT', 'EIO'].includes(code);
}
