import { Command, Option } from 'commander';
import type { Log } from '../core/log.ts';
import type { Configuration } from '../hub/configuration.ts';
import type { Hub } from '../hub/hub.ts';
import { endOnCrash } from './crash.ts';
import { notice } from './output.ts';
import { untilSignal } from './until-signal.ts';

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
      process.umask(0o077);
      const signal = untilSignal();
      await using parts = new AsyncDisposableStack();
      const { createLog } = await import('../system/log.ts');
      const log = createLog(options.logLevel);
      endOnCrash(log);
      const { startHub } = await import('../hub/hub.ts');
      const { listeningSockets } = await import('../hub/listening-sockets.ts');
      const configuration = await configure(options, parts, log);
      const sockets = parts.use(await listeningSockets(process.env, process.pid));
      for (let ended = false; !ended; ) {
        await using hub = await startHub(configuration, log, sockets);
        if (options.testMode === true) notice(await whereToTry(hub, configuration));
        const reason = await Promise.race([signal, hub.restartWanted]);
        ended = reason !== undefined;
        if (ended) {
          log.info('stopping', { signal: reason ?? null });
          // From now on whoever comes is refused, and not left waiting.
          sockets[Symbol.dispose]();
        } else log.info('starting again');
      }
    });
}

/** What an appliance's developer needs, under the names of docs/appliances.md, as a line for a shell. */
async function whereToTry({ administration }: Hub, { portals }: Configuration): Promise<string> {
  const { hub } = await administration.status();
  const address = hub.address ?? '127.0.0.1';
  const host = address.includes(':') ? `[${address}]` : address;
  const variables = [
    `HUB=https://${host}:${hub.https_port}`,
    `HUB_HTTP=http://${host}:${hub.http_port}`,
    `PIN=${hub.ca_fingerprint}`,
    ...portals.slice(0, 1).map(({ baseUrl }) => `CLOUD=${baseUrl}`),
  ];
  return `To try an appliance:\n\n  export ${variables.join(' ')}\n`;
}

/** @param parts what is started beside the hub is disposed of with these */
async function configure(options: ServeOptions, parts: AsyncDisposableStack, log: Log): Promise<Configuration> {
  const { loadConfiguration, requirePortal } = await import('../hub/configuration.ts');
  const configuration = await loadConfiguration(options.config, process.env);
  if (options.testMode !== true) return requirePortal(configuration);
  const { startTestPortal } = await import('./test-hub.ts');
  const { emulator, user, changed } = await startTestPortal(parts, configuration, log);
  notice(
    `The portal emulator is at ${emulator.frontendUrl}: log in as ${user.name} with the password ${user.password}`,
  );
  return changed;
}
