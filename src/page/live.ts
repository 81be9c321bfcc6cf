import type { ServerResponse } from 'node:http';
import type { Administration, HouseStatus } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { PageSession, SetupAccess } from '../core/setup-access.ts';
import type { Guard } from './sign-in/guard.ts';

/** How often is looked whether anything has changed, in ms. */
const INTERVAL = 1000;
/** Of thousands of appliances it takes time, and is done less often: one part in so many of the hub's time goes into it, ... */
const SHARE = 20;
/** ... but at least this often, in ms. */
const MAX_INTERVAL = 5000;
/** After so long a comment comes with the next look, in ms: a connection on which nothing moves for 15 s is ended. */
const COMMENT_AFTER = 8000;
/** Pages that are open at a time; of more the oldest is told no longer. */
const MAX_LISTENERS = 32;
/** Bytes that a browser may leave unread. */
const MAX_UNREAD_BYTES = 16 * 1024;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** A page that is open somewhere. */
interface Listener {
  readonly stream: ServerResponse;
  readonly session: PageSession;
}

/** What it takes to follow the hub. */
export interface LiveOptions {
  readonly administration: Pick<Administration, 'status' | 'pairingsMark'>;
  readonly access: Pick<SetupAccess, 'session'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Tells open pages that what they show has changed (server-sent events); they read it again by themselves. */
export class Live {
  readonly #options: LiveOptions;
  readonly #listeners = new Set<Listener>();
  #fingerprint: StatusFingerprint | null = null;
  /** When all were last sent something, on the boot clock, in ms. */
  #sent = 0;
  /** Looking again and again; null while nobody listens: then nothing is done at all. */
  #run: { cancel(): void } | null = null;
  #isClosed = false;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  /** Serves `GET /live`. */
  serve(guard: Guard): void {
    guard.page('/live', async ({ request, reply, session }) => {
      if (this.#isClosed) return reply.code(503).send();
      // There is nothing to follow for who wants no body, and no place among those who do.
      if (request.method === 'HEAD') return reply.headers(HEADERS).send();
      reply.hijack();
      const stream = reply.raw;
      stream.writeHead(200, HEADERS);
      stream.write('retry: 2000\n\n');
      request.raw.socket.setNoDelay(true);
      this.#join({ stream, session });
      return reply;
    });
  }

  /** Lets go of all pages, so that nobody has to wait for them; they come back by themselves. */
  close(): void {
    this.#isClosed = true;
    for (const { stream } of this.#listeners) stream.end();
    this.#listeners.clear();
    this.#rest();
  }

  #join(listener: Listener): void {
    const [oldest] = this.#listeners;
    if (oldest !== undefined && this.#listeners.size >= MAX_LISTENERS) this.#drop(oldest);
    this.#listeners.add(listener);
    listener.stream.once('close', () => this.#drop(listener));
    if (this.#run !== null) return;
    this.#run = { cancel: () => undefined };
    // At once: what changes from now on is not on the page that is read now.
    void this.#look(this.#run);
  }

  #drop(listener: Listener): void {
    if (!this.#listeners.delete(listener)) return;
    listener.stream.end();
    if (this.#listeners.size === 0) this.#rest();
  }

  #rest(): void {
    this.#run?.cancel();
    this.#run = null;
    this.#fingerprint = null;
  }

  async #look(run: { cancel(): void }): Promise<void> {
    const { administration, access, clock, timers } = this.#options;
    for (const listener of this.#listeners) {
      if (access.session(listener.session.cookie.reveal()) === null) this.#drop(listener);
    }
    const before = this.#fingerprint;
    const began = clock.now().uptime;
    const status = await administration.status().catch(() => null);
    const fingerprint =
      status === null ? before : fingerprintOf({ ...status, pairings: administration.pairingsMark() }, began);
    if (this.#run !== run) return;
    this.#fingerprint = fingerprint;
    const isChanged = before !== null && fingerprint !== null && hasChanged(before, fingerprint);
    if (isChanged) this.#sendAll('event: changed\ndata:\n\n', began);
    else if (began - this.#sent >= COMMENT_AFTER) this.#sendAll(':\n\n', began);
    const took = clock.now().uptime - began;
    const wait = Math.min(MAX_INTERVAL, Math.max(INTERVAL, SHARE * took));
    run.cancel = timers.after(wait, () => void this.#look(run));
  }

  #sendAll(text: string, now: number): void {
    this.#sent = now;
    for (const listener of this.#listeners) this.#send(listener, text);
  }

  #send(listener: Listener, text: string): void {
    if (listener.stream.writableLength > MAX_UNREAD_BYTES) listener.stream.destroy();
    else listener.stream.write(text);
  }
}

/** Milliseconds by which a planned refresh may seem to move because it is told in whole seconds. */
const TOLERANCE = 10_000;

/** What pages show of the hub, without what passes with every second. */
interface StatusFingerprint {
  readonly fixed: string;
  /** When refreshes are due, on the boot clock, in ms; by appliance. */
  readonly dues: readonly (number | null)[];
}

/**
 * @param status with what changes whenever a pairing does
 * @param uptime on the boot clock, in ms
 */
function fingerprintOf(
  { hub, appliances, conditions, notices, pairings }: HouseStatus & { readonly pairings?: string },
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
    fixed: JSON.stringify([
      { ...house, open: registrationOpenFor !== undefined },
      fixed,
      [...conditions, ...notices].map(({ code, appliance, severity, since }) => [code, appliance, severity, since]),
      pairings,
    ]),
    dues: appliances.map(({ refreshIn }) => (refreshIn === null ? null : uptime + refreshIn * 1000)),
  };
}

/** Whether a page that shows the one would show something else of the other. */
function hasChanged(before: StatusFingerprint, after: StatusFingerprint): boolean {
  if (before.fixed !== after.fixed) return true;
  return after.dues.some((due, index) => {
    const known = before.dues[index] ?? null;
    return due === null || known === null ? due !== known : Math.abs(due - known) > TOLERANCE;
  });
}
