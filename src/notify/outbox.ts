import type { Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { HookTestResult, NoticeMessage } from '../core/reports/notice.ts';
import { type CommandInvocation, detectInvocation, rewriteCommands } from '../system/command-invocation.ts';

/** The result of delivering a message once; `detail` in words, without any secret. */
export interface DeliveryResult {
  readonly ok: boolean;
  readonly detail: string;
  /** Whether another try may succeed. */
  readonly retryable: boolean;
}

/** A way on which notices leave the hub. */
export interface Hook {
  readonly kind: HookTestResult['hook'];
  /** As it may be told to anybody: `HookTestResult.target`. */
  readonly target: string;
  /**
   * Delivers a message once, within bounds of its own; never rejects.
   * @param message JSON, in ASCII alone
   * @param signal ends it at once
   */
  deliver(message: string, signal: AbortSignal): Promise<DeliveryResult>;
}

/** What an outbox needs of the machine. */
export interface OutboxContext {
  readonly timers: Timers;
  readonly log: Log;
}

/** How long after each failed try the next one comes, in ms; after the last there is none. */
const RETRY_DELAYS = [10_000, 60_000, 300_000, 1_800_000];
/** Messages that wait; where there are more, those that have waited longest are given up. */
const MAX_QUEUED = 1000;
/** Where the hub ends, what is under way has so long, in ms. */
const SHUTDOWN_GRACE = 3000;

/** Delivers messages through one hook: in their order, one at a time, trying again where that may help. */
export class Outbox implements AsyncDisposable {
  readonly #hook: Hook;
  readonly #context: OutboxContext;
  readonly #queue: NoticeMessage[] = [];
  /** No further try is begun. */
  readonly #closing = new AbortController();
  /** What is under way ends. */
  readonly #deliveryAbort = new AbortController();
  #worker: Promise<void> | null = null;

  constructor(hook: Hook, context: OutboxContext) {
    this.#hook = hook;
    this.#context = context;
  }

  /** Takes a message, and returns at once. */
  enqueue(message: NoticeMessage): void {
    if (this.#closing.signal.aborted) return;
    this.#queue.push(message);
    if (this.#queue.length > MAX_QUEUED) {
      this.#queue.shift();
      this.#logDiscarded(1, 'too many wait');
    }
    this.#worker ??= this.#deliverQueued();
  }

  /** Lets what is under way end, for a moment. What waits is given up: notices that last are sent again within a day. */
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
    this.#logDiscarded(this.#queue.splice(0).length, 'the hub ends');
  }

  #logDiscarded(count: number, error: string): void {
    const { kind, target } = this.#hook;
    if (count > 0) this.#context.log.warn('notice_queue_dropped', { count, hook: kind, target, error });
  }

  async #deliver(message: NoticeMessage): Promise<void> {
    const text = serializeMessage(message);
    for (const pause of [...RETRY_DELAYS, null]) {
      const { ok, detail, retryable } = await this.#hook.deliver(text, this.#deliveryAbort.signal);
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

  #members({ notice, appliance, status }: NoticeMessage, error: string) {
    const { kind, target } = this.#hook;
    return { notice, appliance, status, hook: kind, target, error };
  }
}

/** JSON in one line of ASCII: what reads it need not know of character sets. @param reader who types the commands in it */
export function serializeMessage(message: NoticeMessage, reader: CommandInvocation = detectInvocation()): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const shown = { ...message, what_to_do: rewriteCommands(message.what_to_do, reader) };
  return `${JSON.stringify(shown).replaceAll(/[\u007f-\uffff]/g, escaped)}\n`;
}
