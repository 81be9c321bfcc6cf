import { resolve } from 'node:path';
import type * as v from 'valibot';
import { messageOf } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import type { HooksConfiguration } from '../notify/hooks.ts';
import { parseSigningKey } from '../notify/webhook-signature.ts';
import type { ReadingContext } from './reading-context.ts';
import type { configurationSchema } from './schema.ts';

/** The section `[notify]`. */
export interface NotifyConfiguration extends HooksConfiguration {
  /** Of the messages, BCP 47. */
  readonly language: 'en' | 'de';
}

/** Reads the section `[notify]`. */
export async function readNotify(
  { command, webhook, webhook_secret_file: file, language }: v.InferOutput<typeof configurationSchema>['notify'],
  context: ReadingContext,
): Promise<NotifyConfiguration> {
  return {
    language,
    command: resolveCommand(command, context.directory),
    webhook: webhook ? new Secret(webhook) : null,
    webhookSecret: file === undefined ? null : await readWebhookSecret(file, context),
  };
}

/** The path of a program is relative to the configuration file; a name without a slash is looked up in `$PATH`. */
function resolveCommand(command: readonly string[] | undefined, directory: string): HooksConfiguration['command'] {
  const [program, ...args] = command ?? [];
  if (program === undefined) return null;
  return [program.includes('/') ? resolve(directory, program) : program, ...args];
}

async function readWebhookSecret(file: string, context: ReadingContext): Promise<Secret | null> {
  const key = 'notify.webhook_secret_file';
  try {
    const secret = await context.readSecret(key, file);
    parseSigningKey(secret.reveal());
    return secret;
  } catch (error) {
    context.report(key, messageOf(error));
    return null;
  }
}
