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
import { statusLine } from './status-line.ts';
import { feedWatchdog } from './watchdog.ts';

/** What a daemon runs with. */
export interface DaemonOptions {
  readonly configuration: Configuration;
  readonly log: Log;
  readonly sockets: ListeningSocketPool;
  readonly service: SystemdNotifier;
  /** Left out where there is no configuration that could be read again. */
  readonly reloads?: ReloadCoordinator | undefined;
  /** Resolves when the daemon is to end: by a signal, or null for another reason. */
  readonly stopRequested: Promise<NodeJS.Signals | null>;
  /** Called with every hub that is up. */
  onHubStarted?(hub: Hub): Promise<void>;
}

/** How often it is looked whether the status line is another one, in ms, and how soon after something has happened. */
const STATUS_INTERVAL = 10_000;
const STATUS_DELAY = 500;

/** What runs now. */
interface DaemonState {
  /** Null while one hub takes the place of another. */
  hub: Hub | null;
  /** The status line that was told last. */
  statusLine: string;
}

/** What the next hub is started with. */
interface HubStartPlan {
  readonly configuration: Configuration;
  readonly before?: HandoverState;
  /** The reload that it comes from, and what the hub before ran with. */
  readonly reload?: { readonly reload: Reload; readonly running: Configuration };
}

/**
 * Runs a hub, and after a restore or a reload another one in its place, until the daemon is to end.
 * @throws Failure with the reason in one line where no hub can be started
 */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { log, sockets, service, reloads, stopRequested: ending } = options;
  const ended = new AbortController();
  void ending.then(() => ended.abort());
  const current: DaemonState = { hub: null, statusLine: '' };
  using line = startStatusUpdates(options, current);
  for (let plan: HubStartPlan | null = { configuration: options.configuration }; plan !== null; ) {
    const { configuration, hub: started } = await startPlannedHub(plan, options);
    await using hub = started;
    current.hub = hub;
    current.statusLine = await readStatusLine(hub);
    service.ready(current.statusLine);
    hub.onEvent(() => line.tellSoon());
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
    log.info('hub_stopping', { signal: await ending });
    service.stopping();
    // From now on clients are refused, and not left waiting.
    sockets[Symbol.dispose]();
  }
}

/** Starts the hub that is planned; where a reload's can't start, the one before once more. */
async function startPlannedHub(
  { configuration, before, reload: planned }: HubStartPlan,
  { log, sockets, reloads }: DaemonOptions,
): Promise<{ readonly configuration: Configuration; readonly hub: Hub }> {
  const part = { before, ...(reloads === undefined ? {} : { reloads }) };
  try {
    const hub = await startHub(configuration, log, sockets, part);
    if (planned !== undefined) reloads?.settle(planned.reload, null);
    return { configuration, hub };
  } catch (error) {
    if (planned === undefined) throw error;
    log.error('configuration_reverted', { error: messageOf(error) });
    const hub = await startHub(planned.running, log, sockets, part);
    const problem = `the hub could not start with the changed configuration, and runs with the one before: ${messageOf(error)}`;
    reloads?.settle(planned.reload, problem);
    return { configuration: planned.running, hub };
  }
}

/** Tells the service manager how the running hub is: now and then, and soon after something has happened. */
function startStatusUpdates({ service, log }: DaemonOptions, current: DaemonState): Disposable & { tellSoon(): void } {
  const timers: Timers = systemTimers;
  const parts = new DisposableStack();
  if (!service.isAvailable) return Object.assign(parts, { tellSoon: () => undefined });
  const overdue = () => current.hub?.overdueMs ?? 0;
  const isThere = () => current.hub !== null;
  parts.use(feedWatchdog({ service, overdueMs: overdue, hasHub: isThere, log, timers, now: monotonicNow }));
  let disarm: () => void = () => undefined;
  let isSoon = false;
  const tell = async () => {
    isSoon = false;
    const { hub } = current;
    const line = hub === null ? current.statusLine : await readStatusLine(hub);
    if (line !== current.statusLine && hub === current.hub) {
      current.statusLine = line;
      service.status(line);
    }
    arm(isSoon ? STATUS_DELAY : STATUS_INTERVAL);
  };
  const arm = (delay: number) => {
    disarm();
    disarm = timers.after(delay, () => void tell());
  };
  arm(STATUS_INTERVAL);
  parts.defer(() => disarm());
  const tellSoon = () => {
    // Not later with each event.
    if (!isSoon) arm(STATUS_DELAY);
    isSoon = true;
  };
  return Object.assign(parts, { tellSoon });
}

/**
 * Races others against the end of the daemon, and gives null where that comes first. `Promise.race` with one promise that lasts
 * would keep the outcome of every race, and with it a hub, as long as the daemon runs.
 */
async function raceWithAbort<Other>(ended: AbortSignal, ...others: Promise<Other>[]): Promise<Other | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const lose = () => resolve(null);
  if (ended.aborted) lose();
  ended.addEventListener('abort', lose);
  try {
    return await Promise.race([promise, ...others]);
  } finally {
    ended.removeEventListener('abort', lose);
  }
}

/** Never fails: what keeps the status from being told is no reason to end. */
async function readStatusLine({ administration }: Hub): Promise<string> {
  try {
    return statusLine(await administration.status());
  } catch (error) {
    return `how it stands can't be told: ${messageOf(error)}`;
  }
}

/**
 * The sockets that this process listens on, for one hub after another. Closing them is the caller's, and before the last hub
 * is disposed of: who comes then is refused, and not left waiting.
 * @param env loses what tells of sockets that systemd has opened
 * @throws Failure `config_invalid` where those are none that a hub can have
 */
export async function openListeningSockets(env: NodeJS.ProcessEnv, pid: number): Promise<ListeningSocketPool> {
  return new ListeningSocketPool(await activatedSockets(env, pid));
}
