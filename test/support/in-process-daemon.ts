import { appendFileSync } from 'node:fs';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import { runDaemon } from '../../src/daemon/daemon.ts';
import { ReloadCoordinator } from '../../src/daemon/reloads.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { createLog } from '../../src/system/log.ts';
import { systemRandom } from '../../src/system/random.ts';
import { SystemdNotifier } from '../../src/system/systemd-notifier.ts';

/** A daemon in the test's own process. */
export interface InProcessDaemon {
  /** Stops it as a signal would. */
  stop(): Promise<void>;
}

/**
 * Starts a whole daemon without the command line around it, which takes a fifth of the work of a process.
 * @param file its configuration
 * @param log the file for its log
 */
export async function startInProcessDaemon(
  file: string,
  env: NodeJS.ProcessEnv,
  log: string,
): Promise<InProcessDaemon> {
  const read = () => loadConfiguration(file, env);
  const configuration = await read();
  const ending = Promise.withResolvers<NodeJS.Signals>();
  const up = Promise.withResolvers<void>();
  const sockets = new ListeningSocketPool();
  const running = runDaemon({
    configuration,
    log: createLog('info', { write: (line) => appendFileSync(log, line) }),
    sockets,
    service: new SystemdNotifier({ env: {} }),
    reloads: new ReloadCoordinator(configuration, read, () => systemRandom.uuid()),
    stopRequested: ending.promise,
    onHubStarted: async () => up.resolve(),
  }).finally(() => sockets[Symbol.dispose]());
  await Promise.race([up.promise, running]);
  return {
    async stop() {
      ending.resolve('SIGTERM');
      await running;
    },
  };
}
