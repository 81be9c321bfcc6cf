import type { Configuration } from '../configuration/configuration.ts';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { HandoverState } from '../hub/handover.ts';
import { type Hub, startHub } from '../hub/hub.ts';
import { activatedSockets } from '../lan/activated-sockets.ts';
import { ListeningSocketPool } from '../lan/listening-socket-pool.ts';
import { monotonicNow, systemTimers } from '../system/clock.ts';
import type { SystemdNotifier } from '../system/systemd-notifier.ts';
import type { Reload, ReloadCoordinator } from './reloads.ts';
import { startWithSite } from './site-wait.ts';
import { statusLine } from './status-line.ts';
import { feedWatchdog } from './watchdog.ts';

interface DaemonOptions {
  readonly configuration: Configuration;
  readonly log: Log;
  readonly sockets: ListeningSocketPool;
  readonly service: SystemdNotifier;
  /** Absent if the configuration can't be read again. */
  readonly reloads?: ReloadCoordinator | undefined;
  /** Resolves when the daemon must stop: with the signal, or null for another reason. */
  readonly stopRequested: Promise<NodeJS.Signals | null>;
  /** Called with every hub after it has started. */
  onHubStarted?(hub: Hub): Promise<void>;
}

/** How often the status line is updated, in ms. */
const STATUS_INTERVAL = 10_000;

/** The running hub, and its reported status. */
interface DaemonState {
  /** Null while one hub replaces another. */
  hub: Hub | null;
  /** Whether the next hub waits for the database of its site. */
  isWaiting: boolean;
  /** The status line that was last reported. */
  statusLine: string;
}

/** What the next hub is started with. */
interface HubStartPlan {
  readonly configuration: Configuration;
  readonly before?: HandoverState;
  /** The reload that led to this start, and the configuration of the previous hub. */
  readonly reload?: { readonly reload: Reload; readonly running: Configuration };
}

/**
 * Runs a hub until the daemon must stop. After a restore or a reload a new hub replaces it.
 * @throws Failure with the reason in one line if no hub can be started
 */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { log, sockets, service, reloads, stopRequested } = options;
  const ended = new AbortController();
  void stopRequested.then(() => ended.abort());
  const current: DaemonState = { hub: null, isWaiting: false, statusLine: '' };
  using _updates = startStatusUpdates(options, current);
  for (let plan: HubStartPlan | null = { configuration: options.configuration }; plan !== null; ) {
    const started = await startPlannedHub(plan, options, ended.signal, (reason) =>
      reportWaiting(reason, service, current),
    );
    current.isWaiting = false;
    if (started === null) {
      log.info('hub_stopping', { signal: await stopRequested });
      service.stopping();
      return;
    }
    const { configuration } = started;
    await using hub = started.hub;
    current.hub = hub;
    current.statusLine = await readStatusLine(hub);
    service.ready(current.statusLine);
    await options.onHubStarted?.(hub);
    const next = await raceWithAbort<Reload | 'restart'>(
      ended.signal,
      hub.restartRequested.then(() => 'restart'),
      ...(reloads === undefined ? [] : [reloads.requested]),
    );
    plan = null;
    if (next === 'restart') {
      log.info('hub_restarting');
      plan = { configuration };
    } else if (next !== null) {
      log.info('configuration_reloading', { file: next.configuration.file });
      service.reloading();
      const before = await raceWithAbort(ended.signal, hub.handOver(next.configuration));
      if (before !== null) {
        plan = { configuration: next.configuration, before, reload: { reload: next, running: configuration } };
      }
    }
    current.hub = null;
    if (plan !== null) continue;
    log.info('hub_stopping', { signal: await stopRequested });
    service.stopping();
    // Refuses clients from now on, instead of leaving them waiting.
    sockets[Symbol.dispose]();
  }
}

/**
 * Starts the planned hub. If the hub of a reload can't start, starts one with the previous configuration.
 * @param onWaiting called with each reason why the hub waits for the database of its site
 * @returns null if the daemon must stop before that
 */
async function startPlannedHub(
  { configuration, before, reload: planned }: HubStartPlan,
  { log, sockets, reloads }: DaemonOptions,
  ended: AbortSignal,
  onWaiting: (reason: string) => void,
): Promise<{ readonly configuration: Configuration; readonly hub: Hub } | null> {
  const part = { before, ...(reloads === undefined ? {} : { reloads }) };
  const start = (wanted: Configuration) =>
    startWithSite(() => startHub(wanted, log, sockets, part), {
      configuration: wanted,
      log,
      timers: systemTimers,
      now: monotonicNow,
      ended,
      onWaiting,
    });
  try {
    const hub = await start(configuration);
    if (hub === null) return null;
    if (planned !== undefined) reloads?.settle(planned.reload, null);
    return { configuration, hub };
  } catch (error) {
    if (planned === undefined) throw error;
    log.error('configuration_reverted', { error: messageOf(error) });
    const hub = await start(planned.running);
    if (hub === null) return null;
    const problem = `the hub could not start with the changed configuration and runs with the previous one: ${messageOf(error)}`;
    // A reload for other portals has no other configuration, so this start has done what it was for.
    reloads?.settle(planned.reload, planned.running === configuration ? null : problem);
    return { configuration: planned.running, hub };
  }
}

/** A hub that waits is up for the service manager, which would otherwise end it after a while. */
function reportWaiting(reason: string, service: SystemdNotifier, current: DaemonState): void {
  const line = `waiting for the database of the site: ${reason}`;
  if (!current.isWaiting) service.ready(line);
  else if (line !== current.statusLine) service.status(line);
  current.isWaiting = true;
  current.statusLine = line;
}

/** Reports the status of the running hub to the service manager, and that it works. */
function startStatusUpdates({ service, log }: DaemonOptions, current: DaemonState): Disposable {
  const timers: Timers = systemTimers;
  const parts = new DisposableStack();
  if (!service.isAvailable) return parts;
  const overdueMs = () => current.hub?.overdueMs ?? 0;
  const hasHub = () => current.hub !== null || current.isWaiting;
  parts.use(feedWatchdog({ service, overdueMs, hasHub, log, timers, now: monotonicNow }));
  let disarm: () => void = () => undefined;
  const report = async () => {
    const { hub } = current;
    const line = hub === null ? current.statusLine : await readStatusLine(hub);
    if (line !== current.statusLine && hub === current.hub) {
      current.statusLine = line;
      service.status(line);
    }
    if (!parts.disposed) arm();
  };
  const arm = () => {
    disarm = timers.after(STATUS_INTERVAL, () => void report());
  };
  arm();
  parts.defer(() => disarm());
  return parts;
}

/**
 * Races promises against the end of the daemon.
 * @returns null if the end comes first. (`Promise.race` with one long-lived promise would keep the outcome of every
 *   race, and with it a hub, in memory as long as the daemon runs.)
 */
async function raceWithAbort<Other>(ended: AbortSignal, ...others: Promise<Other>[]): Promise<Other | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const onEnd = () => resolve(null);
  if (ended.aborted) onEnd();
  ended.addEventListener('abort', onEnd);
  try {
    return await Promise.race([promise, ...others]);
  } finally {
    ended.removeEventListener('abort', onEnd);
  }
}

/** Never throws: a status that can't be determined is no reason to stop the daemon. */
async function readStatusLine({ administration }: Hub): Promise<string> {
  try {
    return statusLine(await administration.status());
  } catch (error) {
    return `the status can't be determined: ${messageOf(error)}`;
  }
}

/**
 * The sockets that this process listens on, for one hub after another. The caller must close them before it disposes of
 * the last hub: clients are then refused, instead of being left waiting.
 * @param env the variables about sockets that systemd has opened are removed from it
 * @throws Failure `config_invalid` if systemd passed sockets that a hub can't use
 */
export async function openListeningSockets(env: NodeJS.ProcessEnv, pid: number): Promise<ListeningSocketPool> {
  return new ListeningSocketPool(await activatedSockets(env, pid));
}
