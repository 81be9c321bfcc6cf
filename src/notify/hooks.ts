import type { HookTrial, NoticeMessage } from '../core/reports/notice.ts';
import type { Secret } from '../core/secret.ts';
import { commandHook } from './command.ts';
import { Outbox, type OutboxSurroundings, textOf } from './outbox.ts';
import { webhookHook } from './webhook.ts';

/** Where notices are carried; null for nowhere. */
export interface HooksConfiguration {
  /** A program and its arguments. */
  readonly command: readonly [program: string, ...args: string[]] | null;
  readonly webhook: Secret | null;
}

/** The ways out of the house that are configured. */
export interface Hooks extends AsyncDisposable {
  /** Has a message carried through each of them; never throws, and never waits. */
  post(message: NoticeMessage): void;
  /** Carries a message through each at once, past whatever waits. */
  trial(message: NoticeMessage): Promise<HookTrial[]>;
}

/** Opens the hooks; a hook that hangs holds up no other. */
export function openHooks({ command, webhook }: HooksConfiguration, environment: OutboxSurroundings): Hooks {
  const hooks = [
    ...(command === null ? [] : [commandHook(command, environment.timers)]),
    ...(webhook === null ? [] : [webhookHook(webhook)]),
  ];
  const outboxes = hooks.map((hook) => new Outbox(hook, environment));
  const ending = new AbortController();
  return {
    post(message) {
      for (const outbox of outboxes) outbox.post(message);
    },
    trial(message) {
      const text = textOf(message);
      return Promise.all(
        hooks.map(async (hook) => {
          const { ok, detail } = await hook.carry(text, ending.signal);
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
