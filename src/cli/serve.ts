import { writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { Failure, type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { ReloadCoordinator } from '../daemon/reloads.ts';
import type { Hub } from '../hub/hub.ts';
import { urlHost } from '../system/addresses.ts';
import { isInContainer } from '../system/container.ts';
import type { SystemdNotifier } from '../system/systemd-notifier.ts';
import { exampleVariables } from './appliance/example-variables.ts';
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
    .description('run the hub in the foreground, as its systemd service does')
    .option('--test-mode', 'run with a portal emulator in the same process; all data is discarded at the end')
    .addOption(
      new Option('--log-level <level>', 'how much is logged')
        .choices(['debug', 'info', 'warn', 'error'])
        .default('info'),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ServeOptions>();
      const { isStderrJournal } = await import('../system/log.ts');
      const { SystemdNotifier } = await import('../system/systemd-notifier.ts');
      const service = new SystemdNotifier();
      try {
        await serve(options, service);
      } catch (error) {
        // The prefix <3> makes it an error in the journal (sd-daemon(3)).
        const message = messageOf(error) + (await otherHubHint(error, options));
        reportFailure(
          message,
          exitStatusOf(error, service.isAvailable || isInContainer()),
          isStderrJournal() ? '<3>' : '',
        );
        printStackTraces(error);
      }
    });
}

async function serve(options: ServeOptions, service: SystemdNotifier): Promise<void> {
  process.umask(0o077);
  nameProcess();
  let reload: () => void = () => undefined;
  const ending = waitForTerminationSignal(onHangup(() => reload()));
  await using parts = new AsyncDisposableStack();
  const { createLog } = await import('../system/log.ts');
  const log = createLog(options.logLevel);
  installDaemonCrashHandler(log);
  const { openListeningSockets, runDaemon } = await import('../daemon/daemon.ts');
  const { configuration, introduction } = await loadServeConfiguration(options, parts, log);
  const reloads = options.testMode === true ? undefined : await createReloads(configuration, options);
  reload = () => {
    if (reloads === undefined) log.warn('reload_unavailable');
    else void reloads.request(log);
  };
  const sockets = parts.use(await openListeningSockets(process.env, process.pid));
  await runDaemon({
    configuration,
    log,
    sockets,
    service,
    reloads,
    stopRequested: ending,
    async onHubStarted(hub) {
      // Not only at exit: a hub often ends by a power cut.
      flushCompileCache();
      if (introduction !== null) printStderr(`${introduction}\n${await developerInstructions(hub, configuration)}`);
    },
  });
}

/** Node.js calls its process `MainThread`, and `ps` and `systemctl status` show that. The arguments stay as they are. */
function nameProcess(): void {
  try {
    writeFileSync('/proc/self/comm', 'latchkey');
  } catch {
    // There is no /proc, or it is read-only.
  }
}

/** If a port is in use and a hub runs on this machine, that hub probably uses it. */
async function otherHubHint(error: unknown, { config }: ServeOptions): Promise<string> {
  if (!(error instanceof Failure && error.code === 'port_unavailable')) return '';
  const [{ controlSocketCandidates }, { probeSocket }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../control/find-control-socket.ts'),
  ]);
  for (const path of await controlSocketCandidates(config, process.env)) {
    if ((await probeSocket(path)) === 'alive')
      return `; a hub is already running on this machine (its control socket is ${path})`;
  }
  return '';
}

/** A SIGHUP that arrived before this needs no reload: the configuration has only just been read. */
async function createReloads(running: Configuration, { config }: ServeOptions): Promise<ReloadCoordinator> {
  const [{ loadConfiguration }, { ReloadCoordinator }, { systemRandom }] = await Promise.all([
    import('../configuration/configuration.ts'),
    import('../daemon/reloads.ts'),
    import('../system/random.ts'),
  ]);
  return new ReloadCoordinator(
    running,
    () => loadConfiguration(config, process.env),
    () => systemRandom.uuid(),
  );
}

/** The address of the hub's page, and the variables for the examples of docs/appliances.md. */
async function developerInstructions({ administration }: Hub, { portals }: Configuration): Promise<string> {
  const { id, address, httpPort, httpsPort, caFingerprint } = (await administration.status()).hub;
  const page = `https://${urlHost(address ?? '127.0.0.1')}:${httpsPort}/`;
  const cloud = portals.slice(0, 1).flatMap((portal) => (portal.type === 'helper' ? [`CLOUD=${portal.baseUrl}`] : []));
  return `The hub's page is at ${page}; "latchkey setup-code" shows the code to sign in.
${exampleVariables({ id, http_port: httpPort }, page, caFingerprint, cloud)}
`;
}

/**
 * @param parts receives what is started beside the hub, to dispose of it at the end
 * @returns `introduction`: what a developer reads once the hub has started in test mode; null without it
 */
async function loadServeConfiguration(
  options: ServeOptions,
  parts: AsyncDisposableStack,
  log: Log,
): Promise<{ configuration: Configuration; introduction: string | null }> {
  const { loadConfiguration } = await import('../configuration/configuration.ts');
  const configuration = await loadConfiguration(options.config, process.env);
  if (options.testMode !== true) return { configuration, introduction: null };
  const { isLocal, startTestPortal } = await import('./test-mode.ts');
  const { emulator, user, changed } = await startTestPortal(parts, configuration, log);
  const login = `The portal emulator is at ${emulator.frontendUrl}: log in as ${user.name} with the password ${user.password}`;
  return { configuration: changed, introduction: isLocal(changed) ? login : `${login}\n${OPEN_TO_NETWORK}` };
}

const OPEN_TO_NETWORK =
  'Phones and appliances on your network reach the hub and the emulator, and so does everybody else there. LATCHKEY_LAN_LISTEN=127.0.0.1 keeps both to this machine.';

const EXIT_FAILURE = 1;
/** `EX_CONFIG` of sysexits(3); the unit's `RestartPreventExitStatus` names it. */
const EXIT_CONFIG = 78;

/** Failures that would occur again at the next start. */
const PERMANENT_FAILURES: ReadonlySet<FailureCode> = new Set([
  'config_invalid',
  'control_socket_taken',
  'port_unavailable',
  'database_unusable',
  'state_dir_unusable',
  'store_key_wrong',
  'store_locked',
  'store_schema_unknown',
  'store_unreadable',
]);

/**
 * The exit status of a daemon that could not start.
 * @param supervised whether a service manager or a container engine runs it, which would restart it again and again
 */
function exitStatusOf(error: unknown, supervised: boolean): number {
  return supervised && error instanceof Failure && PERMANENT_FAILURES.has(error.code) && !isTransient(error)
    ? EXIT_CONFIG
    : EXIT_FAILURE;
}

/** Whether a later start may succeed: a missing address may appear with its network, and a full disk may get space. */
function isTransient({ cause }: Failure): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EROFS', 'ENOSPC', 'EDQUOT', 'EIO'].includes(code);
}
