import type { ServerResponse } from 'node:http';
import { type Administration, STATUS_FIELDS, type StatusReport } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { LoginStatus } from '../core/connections/connection-status.ts';
import { isVolatile } from '../core/status-field.ts';
import type { AuthenticatedRoutes } from './sign-in/authenticated-routes.ts';

/** How often the hub checks whether anything has changed, in ms. */
const POLL_INTERVAL = 1000;
/**
 * After this long without an event the next check sends one, in ms. A page that gets none for 15 s says that the hub does
 * not respond: a hub without power or network cable does not close its connections.
 */
const HEARTBEAT_INTERVAL = 5000;
/** Subscribed pages at a time; a further one replaces the oldest. */
const MAX_SUBSCRIBERS = 32;
/** Unread bytes after which the hub drops a connection. */
const MAX_UNREAD_BYTES = 16 * 1024;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // Some reverse proxies would hold the events back otherwise.
  'x-accel-buffering': 'no',
};

/** An open page that receives events. */
interface Subscriber {
  readonly stream: ServerResponse;
  /** Whether its session has not ended. */
  isSignedIn(): boolean;
}

/** What {@link LiveUpdates} needs. */
export interface LiveUpdatesOptions {
  readonly administration: Pick<Administration, 'status' | 'pairingsVersion'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Notifies open pages by server-sent events that their content has changed; they then load it again. */
export class LiveUpdates {
  readonly #options: LiveUpdatesOptions;
  readonly #subscribers = new Set<Subscriber>();
  #fingerprint: StatusFingerprint | null = null;
  /** When all subscribers were last sent something, on the boot clock, in ms. */
  #lastSentAt = 0;
  /** The running poll; null while there are no subscribers. */
  #polling: { cancel(): void } | null = null;
  #isClosed = false;

  constructor(options: LiveUpdatesOptions) {
    this.#options = options;
  }

  /** Serves `GET /live`. */
  serve(guard: AuthenticatedRoutes): void {
    guard.page('/live', async ({ request, reply, isSignedIn }) => {
      if (this.#isClosed) return reply.code(503).send();
      // A HEAD request must not take a subscriber's place.
      if (request.method === 'HEAD') return reply.headers(HEADERS).send();
      reply.hijack();
      const stream = reply.raw;
      stream.writeHead(200, HEADERS);
      stream.write('retry: 2000\n\n');
      request.raw.socket.setNoDelay(true);
      this.#subscribe({ stream, isSignedIn });
      return reply;
    });
  }

  /** Ends all streams, so that a shutdown does not wait for them; the pages reconnect automatically. */
  close(): void {
    this.#isClosed = true;
    for (const { stream } of this.#subscribers) stream.end();
    this.#subscribers.clear();
    this.#stopPolling();
  }

  #subscribe(subscriber: Subscriber): void {
    const [oldest] = this.#subscribers;
    if (oldest !== undefined && this.#subscribers.size >= MAX_SUBSCRIBERS) this.#unsubscribe(oldest);
    this.#subscribers.add(subscriber);
    subscriber.stream.once('close', () => this.#unsubscribe(subscriber));
    if (this.#polling !== null) return;
    this.#polling = { cancel: () => undefined };
    // Immediately: later changes must be compared with the state that the page is about to load.
    void this.#poll(this.#polling);
  }

  #unsubscribe(subscriber: Subscriber): void {
    if (!this.#subscribers.delete(subscriber)) return;
    subscriber.stream.end();
    if (this.#subscribers.size === 0) this.#stopPolling();
  }

  #stopPolling(): void {
    this.#polling?.cancel();
    this.#polling = null;
    this.#fingerprint = null;
  }

  async #poll(run: { cancel(): void }): Promise<void> {
    const { administration, clock, timers } = this.#options;
    for (const subscriber of this.#subscribers) {
      if (!subscriber.isSignedIn()) this.#unsubscribe(subscriber);
    }
    const before = this.#fingerprint;
    const startedAt = clock.now().uptime;
    const status = await administration.status().catch(() => null);
    const fingerprint =
      status === null ? before : fingerprintOf({ ...status, pairings: administration.pairingsVersion() }, startedAt);
    if (this.#polling !== run) return;
    this.#fingerprint = fingerprint;
    const isChanged = before !== null && fingerprint !== null && hasChanged(before, fingerprint);
    if (isChanged) this.#broadcast('event: changed\ndata:\n\n', startedAt);
    else if (startedAt - this.#lastSentAt >= HEARTBEAT_INTERVAL)
      this.#broadcast('event: heartbeat\ndata:\n\n', startedAt);
    run.cancel = timers.after(POLL_INTERVAL, () => void this.#poll(run));
  }

  #broadcast(text: string, now: number): void {
    this.#lastSentAt = now;
    for (const subscriber of this.#subscribers) this.#send(subscriber, text);
  }

  #send(subscriber: Subscriber, text: string): void {
    if (subscriber.stream.writableLength > MAX_UNREAD_BYTES) subscriber.stream.destroy();
    else subscriber.stream.write(text);
  }
}

/** A page shows the last token of an appliance at most this much too old, in ms. */
const USAGE_INTERVAL = 300_000;

/** A planned refresh may seem to move by this many ms, because the status has whole seconds. */
const DUE_TOLERANCE_MS = 10_000;

const VOLATILE_NAMES: ReadonlySet<string> = new Set(
  Object.entries(STATUS_FIELDS).flatMap(([name, field]) => (isVolatile(field) ? name : [])),
);

/** What pages show of the hub, without the values that change every second. */
interface StatusFingerprint {
  readonly content: string;
  /** When the refresh of each connection is due, on the boot clock, in ms. */
  readonly refreshDueTimes: readonly (number | null)[];
}

/**
 * @param status the status, and a version that changes with every pairing
 * @param uptime on the boot clock, in ms
 */
function fingerprintOf(
  { hub, connections, appliances, conditions, notices, pairings }: StatusReport & { readonly pairings?: string },
  uptime: number,
): StatusFingerprint {
  const { registrationOpenFor, ...stableHub } = hub;
  // A page is not shown anew for each request of an appliance.
  const stableAppliances = appliances.map(({ tokens, refused, lastToken, usage: _, ...appliance }) => ({
    ...stableLogin(appliance),
    refusals: refused && Math.floor(Math.log2(refused.count)),
    served: lastToken && Math.floor(Date.parse(lastToken) / USAGE_INTERVAL),
  }));
  return {
    content: JSON.stringify([
      { ...stable(stableHub), open: registrationOpenFor !== undefined },
      stableAppliances,
      connections.map(stableLogin),
      [...conditions, ...notices].map(({ code, appliance, connection, severity, since }) => [
        code,
        appliance,
        connection,
        severity,
        since,
      ]),
      pairings,
    ]),
    refreshDueTimes: connections.map(({ refreshIn }) => (refreshIn === null ? null : uptime + refreshIn * 1000)),
  };
}

/** An appliance or a connection without the values that change every second. */
function stableLogin({ problem, ...login }: LoginStatus) {
  return {
    ...stable(login),
    serves: login.expiresIn !== null && login.expiresIn > 0,
    // Without the message, which may count seconds.
    problem: problem && { code: problem.code, since: problem.since },
  };
}

/** The members without those that change with time alone, or with each token. */
function stable(status: object): object {
  return Object.fromEntries(Object.entries(status).filter(([name]) => !VOLATILE_NAMES.has(name)));
}

/** Whether a page would look different for the two. */
function hasChanged(before: StatusFingerprint, after: StatusFingerprint): boolean {
  if (before.content !== after.content) return true;
  return after.refreshDueTimes.some((due, index) => {
    const dueBefore = before.refreshDueTimes[index] ?? null;
    return due === null || dueBefore === null ? due !== dueBefore : Math.abs(due - dueBefore) > DUE_TOLERANCE_MS;
  });
}
