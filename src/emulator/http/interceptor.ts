import type { Endpoint } from './endpoint.ts';

/** One request on its way through the emulator. */
export interface Exchange {
  readonly endpoint: Endpoint;
  /** The registered client it names, authenticated or not; null where it names none. */
  readonly client: string | null;
  /** Cuts the connection: the client sees a reset instead of an answer. */
  drop(): void;
}

/** Comes between requests and their answers: the place where faults attach. What it awaits, the client waits for. */
export interface Interceptor {
  /** A request is here whole, and nothing was done with it; after `drop()` nothing will be. */
  received?(exchange: Exchange): void | Promise<void>;
  /** What was asked is done (tokens are rotated) and the answer about to be sent: `drop()` loses it. */
  answering?(exchange: Exchange, status: number): void | Promise<void>;
}
