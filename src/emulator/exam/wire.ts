import type { IncomingHttpHeaders } from 'node:http';
import { monotonicNow } from '../../system/clock.ts';
import type { LoggedRequest } from '../http/logged-request.ts';
import type { InterceptedRequest, Interceptor } from '../options.ts';

export interface WireRequest {
  /** Its entry of the request log, with unmasked secrets. */
  readonly logged: LoggedRequest;
  readonly headers: IncomingHttpHeaders;
  /** Milliseconds on the clock of the timers. */
  readonly receivedAt: number;
  /** When its response was about to be sent; null before that. */
  answeredAt: number | null;
}

/** What is held back, until `release` is called. */
export interface Hold {
  /** The requests held so far. */
  readonly requests: readonly WireRequest[];
  release(): void;
}

/** More requests than any client sends that calls the API about once a second. */
const MAX_REQUESTS = 1500;

/** A header of requests that are not the client's. */
export const NOT_OF_THE_CLIENT = 'x-latchkey-exam';

/** Watches the requests of a client at the emulator, and holds some of them back. */
export class Wire {
  readonly requests: WireRequest[] = [];
  readonly #byEntry = new WeakMap<LoggedRequest, WireRequest>();
  readonly #holds = new Set<{
    readonly moment: 'request' | 'response';
    stop(request: WireRequest): Promise<void> | null;
  }>();
  readonly #onChange: () => void;

  /** @param onChange called for every request, and again when its response is about to be sent */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Whether the client sends requests without a pause. */
  get isFlooded(): boolean {
    return this.requests.length >= MAX_REQUESTS;
  }

  /** Whether something is held back, for which the client may wait. */
  get isHolding(): boolean {
    return this.#holds.size > 0;
  }

  /** The hooks for the emulator. */
  readonly interceptor: Interceptor = {
    received: ({ logged, headers }: InterceptedRequest) => {
      if (NOT_OF_THE_CLIENT in headers) return;
      const request: WireRequest = { logged, headers, receivedAt: monotonicNow(), answeredAt: null };
      this.#byEntry.set(logged, request);
      if (!this.isFlooded) this.requests.push(request);
      this.#onChange();
      return this.#stop('request', request);
    },
    answering: async ({ logged }: InterceptedRequest) => {
      const request = this.#byEntry.get(logged);
      if (request === undefined) return;
      await this.#stop('response', request);
      request.answeredAt = monotonicNow();
      this.#onChange();
    },
  };

  /** Holds back requests before they are processed, or their responses. The connection stays open. */
  hold(moment: 'request' | 'response', matches: (request: WireRequest) => boolean): Hold {
    const { promise, resolve } = Promise.withResolvers<void>();
    const requests: WireRequest[] = [];
    const onChange = this.#onChange;
    const hold = {
      moment,
      stop(request: WireRequest) {
        if (!matches(request)) return null;
        requests.push(request);
        onChange();
        return promise;
      },
    };
    this.#holds.add(hold);
    const release = () => {
      this.#holds.delete(hold);
      resolve();
    };
    return { requests, release };
  }

  async #stop(moment: 'request' | 'response', request: WireRequest): Promise<void> {
    for (const hold of this.#holds) if (hold.moment === moment) await hold.stop(request);
  }
}

export function isRefresh({ logged }: WireRequest): boolean {
  return logged.endpoint === 'token' && logged.form['grant_type'] === 'refresh_token';
}

/** Whether a request was granted, and its response not replaced by a fault. */
export function isGranted({ logged, answeredAt }: WireRequest): boolean {
  return answeredAt !== null && logged.status === 200 && logged.fault === undefined;
}

/** The token of a request's Authorization header; null if it has none. */
export function bearerOf({ headers }: WireRequest): string | null {
  return /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}
