import type { Clock, Timers } from '../core/clock.ts';
import type { HookTestResult, NoticeMessage } from '../core/health/notice.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import { type CommandInvocation, detectInvocation, rewriteCommands } from '../system/command-invocation.ts';

/** The result of one delivery attempt; `detail` is a text without any secret. */
export interface DeliveryResult {
  readonly ok: boolean;
  readonly detail: string;
  /** Whether another attempt may succeed. */
  readonly retryable: boolean;
}

/** A way to deliver notices. */
export interface Hook {
  readonly kind: HookTestResult['hook'];
  /** The target without any secret: `HookTestResult.target`. */
  readonly target: string;
  /**
   * Makes one delivery attempt, with its own timeouts; never rejects.
   * @param message JSON, only ASCII
   * @param signal aborts the attempt at once
   * @param id the same for all attempts of one message
   */
  deliver(message: string, signal: AbortSignal, id: string): Promise<DeliveryResult>;
}

/** What hooks and their outboxes need. */
export interface OutboxContext {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
}

/** The delays between attempts, in ms. After the attempt that follows the last delay the message is dropped. */
const RETRY_DELAYS = [10_000, 60_000, 300_000, 1_800_000];
/** Queued messages; if there are more, the oldest are dropped. */
const MAX_QUEUED = 1000;
/** How long a delivery in progress may take when the hub stops, in ms. */
const SHUTDOWN_GRACE = 3000;

/** Delivers messages through one hook, in order, one at a time, with retries if they may help. */
export class Outbox implements AsyncDisposable {
  readonly #hook: Hook;
  readonly #context: OutboxContext;
  readonly #queue: NoticeMessage[] = [];
  /** Aborted when no further attempt may start. */
  readonly #closing = new AbortController();
  /** Ends the attempt in progress. */
  readonly #deliveryAbort = new AbortController();
  #worker: Promise<void> | null = null;

  constructor(hook: Hook, context: OutboxContext) {
    this.#hook = hook;
    this.#context = context;
  }

  /** Queues a message, and returns at once. */
  enqueue(message: NoticeMessage): void {
    if (this.#closing.signal.aborted) return;
    this.#queue.push(message);
    if (this.#queue.length > MAX_QUEUED) {
      this.#queue.shift();
      this.#logDiscarded(1, 'the queue is full');
    }
    this.#worker ??= this.#deliverQueued();
  }

  /**
   * Lets an attempt in progress end, for a moment. Queued messages are dropped: open notices are sent again within a
   * day.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    const disarm = this.#context.timers.after(SHUTDOWN_GRACE, () => this.#deliveryAbort.abort());
    await this.#worker;
    disarm();
  }

  async #deliverQueued(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      await this.#deliver(next);
      if (this.#closing.signal.aborted) break;
    }
    this.#worker = null;
    this.#logDiscarded(this.#queue.splice(0).length, 'the hub is stopping');
  }

  #logDiscarded(count: number, error: string): void {
    const { kind, target } = this.#hook;
    if (count > 0) this.#context.log.warn('notice_queue_dropped', { count, hook: kind, target, error });
  }

  async #deliver(message: NoticeMessage): Promise<void> {
    const text = serializeMessage(message);
    const id = this.#context.random.uuid();
    for (const pause of [...RETRY_DELAYS, null]) {
      const { ok, detail, retryable } = await this.#hook.deliver(text, this.#deliveryAbort.signal, id);
      if (ok) return;
      if (pause === null || !retryable || this.#closing.signal.aborted) {
        this.#context.log.warn('notice_dropped', this.#members(message, detail));
        return;
      }
      const members = this.#members(message, detail);
      this.#context.log.warn('notice_delivery_failed', { ...members, retry_in: pause / 1000 });
      await this.#context.timers.sleep(pause, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
    }
  }

  #members({ notice, connection, appliance, status }: NoticeMessage, error: string) {
    const { kind, target } = this.#hook;
    return { notice, connection, appliance, status, hook: kind, target, error };
  }
}

/**
 * JSON in one line of ASCII, so that the receiver needs no character set.
 * @param reader how a person runs the commands in it
 */
export function serializeMessage(message: NoticeMessage, reader: CommandInvocation = detectInvocation()): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const shown = { ...message, what_to_do: rewriteCommands(message.what_to_do, reader) };
  return `${JSON.stringify(shown).replaceAll(/[\u007f-\uffff]/g, escaped)}\n`;
}
