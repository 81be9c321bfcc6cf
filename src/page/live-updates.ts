import type { ServerResponse } from 'node:http';
import { type Administration, STATUS_FIELDS, type StatusReport } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
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
interface LiveUpdatesOptions {
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
    const fingerprint = status === null ? before : fingerprintOf(status, administration.pairingsVersion(), startedAt);
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
    for (const { stream } of this.#subscribers) {
      if (stream.writableLength > MAX_UNREAD_BYTES) stream.destroy();
      else stream.write(text);
    }
  }
}

/** A page shows the last token of an appliance at most this much too old, in ms. */
const USAGE_INTERVAL = 300_000;

/** A planned refresh may seem to move by this many ms, because the status has whole seconds. */
const DUE_TOLERANCE_MS = 10_000;

/** What pages show of the hub, without the values that change every second. */
interface StatusFingerprint {
  readonly content: string;
  /** When the refresh of each connection is due, on the boot clock, in ms. */
  readonly refreshDueTimes: readonly (number | null)[];
}

/**
 * @param pairings a version that changes with every pairing
 * @param uptime on the boot clock, in ms
 */
function fingerprintOf(status: StatusReport, pairings: string | undefined, uptime: number): StatusFingerprint {
  return {
    content: JSON.stringify({ ...status, pairings }, stableValue),
    refreshDueTimes: status.connections.map(({ refreshIn }) => (refreshIn === null ? null : uptime + refreshIn * 1000)),
  };
}

/** Numbers of seconds, which change with time alone. */
const SECONDS: ReadonlySet<string> = new Set([
  'registrationOpenFor',
  ...Object.entries(STATUS_FIELDS).flatMap(([name, field]) => (isVolatile(field) ? name : [])),
]);

/** Members that change with time or with each token, and messages, which may count seconds. */
const UNSTABLE: readonly string[] = ['tokens', 'usage', 'lastSeen', 'message'];

/** The value of a member without what changes too often for a page to be shown anew. */
function stableValue(name: string, value: unknown): unknown {
  if (UNSTABLE.includes(name)) return undefined;
  if (name === 'lastToken' && typeof value === 'string') return Math.floor(Date.parse(value) / USAGE_INTERVAL);
  if (typeof value !== 'number') return value;
  // Of refused requests.
  if (name === 'count') return Math.floor(Math.log2(value));
  return SECONDS.has(name) ? value > 0 : value;
}

/** Whether a page would look different for the two. */
function hasChanged(before: StatusFingerprint, after: StatusFingerprint): boolean {
  if (before.content !== after.content) return true;
  return after.refreshDueTimes.some((due, index) => {
    const dueBefore = before.refreshDueTimes[index] ?? null;
    return due === null || dueBefore === null ? due !== dueBefore : Math.abs(due - dueBefore) > DUE_TOLERANCE_MS;
  });
}
