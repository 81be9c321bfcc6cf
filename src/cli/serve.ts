import { Command, Option } from 'commander';
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
      if (options.testMode) {
        const { startTestHub } = await import('./test-hub.ts');
        const { emulator, user } = await startTestHub(parts, options.config, log);
        notice(
          `The portal emulator is at ${emulator.frontendUrl}: log in as ${user.name} with the password ${user.password}`,
        );
      } else {
        const { loadConfiguration, requirePortal } = await import('../hub/configuration.ts');
        const { startHub } = await import('../hub/hub.ts');
        parts.use(await startHub(requirePortal(await loadConfiguration(options.config, process.env)), log));
      }
      log.info('stopping', { signal: await signal });
    });
}
