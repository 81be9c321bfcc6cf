import type { ServerResponse } from 'node:http';
import type { Administration, StatusReport } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { PageSession, SetupAccess } from '../core/setup-access.ts';
import type { AuthenticatedRoutes } from './sign-in/authenticated-routes.ts';

/** How often is looked whether anything has changed, in ms. */
const POLL_INTERVAL = 1000;
/** Of thousands of appliances it takes time, and is done less often: one part in so many of the hub's time goes into it, ... */
const POLL_BACKOFF_FACTOR = 20;
/** ... but at least this often, in ms. */
const MAX_POLL_INTERVAL = 5000;
/** After so long a comment comes with the next look, in ms: a connection on which nothing moves for 15 s is ended. */
const KEEP_ALIVE_INTERVAL = 8000;
/** Pages that are open at a time; of more the oldest is told no longer. */
const MAX_SUBSCRIBERS = 32;
/** Bytes that a browser may leave unread. */
const MAX_UNREAD_BYTES = 16 * 1024;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** A page that is open somewhere. */
interface Subscriber {
  readonly stream: ServerResponse;
  readonly session: PageSession;
}

/** What it takes to follow the hub. */
export interface LiveUpdatesOptions {
  readonly administration: Pick<Administration, 'status' | 'pairingsVersion'>;
  readonly access: Pick<SetupAccess, 'findSession'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Tells open pages that what they show has changed (server-sent events); they read it again by themselves. */
export class LiveUpdates {
  readonly #options: LiveUpdatesOptions;
  readonly #subscribers = new Set<Subscriber>();
  #fingerprint: StatusFingerprint | null = null;
  /** When all were last sent something, on the boot clock, in ms. */
  #lastSentAt = 0;
  /** Looking again and again; null while nobody listens: then nothing is done at all. */
  #polling: { cancel(): void } | null = null;
  #isClosed = false;

  constructor(options: LiveUpdatesOptions) {
    this.#options = options;
  }

  /** Serves `GET /live`. */
  serve(guard: AuthenticatedRoutes): void {
    guard.page('/live', async ({ request, reply, session }) => {
      if (this.#isClosed) return reply.code(503).send();
      // There is nothing to follow for who wants no body, and no place among those who do.
      if (request.method === 'HEAD') return reply.headers(HEADERS).send();
      reply.hijack();
      const stream = reply.raw;
      stream.writeHead(200, HEADERS);
      stream.write('retry: 2000\n\n');
      request.raw.socket.setNoDelay(true);
      this.#subscribe({ stream, session });
      return reply;
    });
  }

  /** Lets go of all pages, so that nobody has to wait for them; they come back by themselves. */
  close(): void {
    this.#isClosed = true;
    for (const { stream } of this.#subscribers) stream.end();
    this.#subscribers.clear();
    this.#stopPolling();
  }

  #subscribe(listener: Subscriber): void {
    const [oldest] = this.#subscribers;
    if (oldest !== undefined && this.#subscribers.size >= MAX_SUBSCRIBERS) this.#unsubscribe(oldest);
    this.#subscribers.add(listener);
    listener.stream.once('close', () => this.#unsubscribe(listener));
    if (this.#polling !== null) return;
    this.#polling = { cancel: () => undefined };
    // At once: what changes from now on is not on the page that is read now.
    void this.#poll(this.#polling);
  }

  #unsubscribe(listener: Subscriber): void {
    if (!this.#subscribers.delete(listener)) return;
    listener.stream.end();
    if (this.#subscribers.size === 0) this.#stopPolling();
  }

  #stopPolling(): void {
    this.#polling?.cancel();
    this.#polling = null;
    this.#fingerprint = null;
  }

  async #poll(run: { cancel(): void }): Promise<void> {
    const { administration, access, clock, timers } = this.#options;
    for (const listener of this.#subscribers) {
      if (access.findSession(listener.session.cookie.reveal()) === null) this.#unsubscribe(listener);
    }
    const before = this.#fingerprint;
    const began = clock.now().uptime;
    const status = await administration.status().catch(() => null);
    const fingerprint =
      status === null ? before : fingerprintOf({ ...status, pairings: administration.pairingsVersion() }, began);
    if (this.#polling !== run) return;
    this.#fingerprint = fingerprint;
    const isChanged = before !== null && fingerprint !== null && hasChanged(before, fingerprint);
    if (isChanged) this.#broadcast('event: changed\ndata:\n\n', began);
    else if (began - this.#lastSentAt >= KEEP_ALIVE_INTERVAL) this.#broadcast(':\n\n', began);
    const took = clock.now().uptime - began;
    const wait = Math.min(MAX_POLL_INTERVAL, Math.max(POLL_INTERVAL, POLL_BACKOFF_FACTOR * took));
    run.cancel = timers.after(wait, () => void this.#poll(run));
  }

  #broadcast(text: string, now: number): void {
    this.#lastSentAt = now;
    for (const listener of this.#subscribers) this.#send(listener, text);
  }

  #send(listener: Subscriber, text: string): void {
    if (listener.stream.writableLength > MAX_UNREAD_BYTES) listener.stream.destroy();
    else listener.stream.write(text);
  }
}

/** Milliseconds by which a planned refresh may seem to move because it is told in whole seconds. */
const DUE_TOLERANCE_MS = 10_000;

/** What pages show of the hub, without what passes with every second. */
interface StatusFingerprint {
  readonly content: string;
  /** When refreshes are due, on the boot clock, in ms; by appliance. */
  readonly refreshDueTimes: readonly (number | null)[];
}

/**
 * @param status with what changes whenever a pairing does
 * @param uptime on the boot clock, in ms
 */
function fingerprintOf(
  { hub, appliances, conditions, notices, pairings }: StatusReport & { readonly pairings?: string },
  uptime: number,
): StatusFingerprint {
  const { uptime: _, registrationOpenFor, ...house } = hub;
  const fixed = appliances.map(({ expiresIn, refreshIn, problem, ...appliance }) => ({
    ...appliance,
    serves: expiresIn !== null && expiresIn > 0,
    // Its words may count seconds.
    problem: problem && { code: problem.code, since: problem.since },
  }));
  return {
    content: JSON.stringify([
      { ...house, open: registrationOpenFor !== undefined },
      fixed,
      [...conditions, ...notices].map(({ code, appliance, severity, since }) => [code, appliance, severity, since]),
      pairings,
    ]),
    refreshDueTimes: appliances.map(({ refreshIn }) => (refreshIn === null ? null : uptime + refreshIn * 1000)),
  };
}

/** Whether a page that shows the one would show something else of the other. */
function hasChanged(before: StatusFingerprint, after: StatusFingerprint): boolean {
  if (before.content !== after.content) return true;
  return after.refreshDueTimes.some((due, index) => {
    const known = before.refreshDueTimes[index] ?? null;
    return due === null || known === null ? due !== known : Math.abs(due - known) > DUE_TOLERANCE_MS;
  });
}
