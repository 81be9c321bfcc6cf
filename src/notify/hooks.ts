import type { HookTestResult, NoticeMessage } from '../core/health/notice.ts';
import type { Secret } from '../core/secret.ts';
import { commandHook } from './command.ts';
import { Outbox, type OutboxContext, serializeMessage } from './outbox.ts';
import { webhookHook } from './webhook.ts';

/** Where notices are delivered to; null for nowhere. */
export interface HooksConfiguration {
  /** A program and its arguments. */
  readonly command: readonly [program: string, ...args: string[]] | null;
  readonly webhook: Secret | null;
  /** Signs what is posted to the webhook. */
  readonly webhookSecret: Secret | null;
}

/** The configured hooks. */
interface Hooks extends AsyncDisposable {
  /** Queues a message for every hook; never throws, and never waits. */
  enqueue(message: NoticeMessage): void;
  /** Delivers a message through every hook at once, ahead of the queued messages. */
  sendTest(message: NoticeMessage): Promise<HookTestResult[]>;
}

/** Opens the hooks. A hook that hangs does not delay the others. */
export function openHooks({ command, webhook, webhookSecret }: HooksConfiguration, context: OutboxContext): Hooks {
  const hooks = [
    ...(command === null ? [] : [commandHook(command, context.timers)]),
    ...(webhook === null ? [] : [webhookHook(webhook, webhookSecret, context.clock)]),
  ];
  const outboxes = hooks.map((hook) => new Outbox(hook, context));
  const ending = new AbortController();
  return {
    enqueue(message) {
      for (const outbox of outboxes) outbox.enqueue(message);
    },
    sendTest(message) {
      const text = serializeMessage(message);
      return Promise.all(
        hooks.map(async (hook) => {
          const { ok, detail } = await hook.deliver(text, ending.signal, context.random.uuid());
          return { hook: hook.kind, target: hook.target, ok, detail };
        }),
      );
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await Promise.all(outboxes.map((outbox) => outbox[Symbol.asyncDispose]()));
    },
  };
}
