import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename } from 'node:path';
import { fail, ok, type Said } from './finding.ts';
import type { Subject } from './subject.ts';

/** Whether the program that notices go to is there. What it is given, and where a webhook is, may be secret. */
export async function checkHooks({ configuration }: Subject): Promise<Said[]> {
  const { command, webhook } = configuration?.notify ?? { command: null, webhook: null };
  if (command === null && webhook === null)
    return [ok('no hook is configured: notices are on the page and in "latchkey status"')];
  const said: Said[] = [];
  if (command !== null) said.push(await program(command[0]));
  if (webhook !== null) said.push(ok(`notices go to ${new URL(webhook.reveal()).origin}`, '.webhook'));
  return said;
}

async function program(path: string): Promise<Said> {
  const name = '.command';
  // One without a path is looked for by whoever runs it.
  if (!path.includes('/')) return ok(`notices go to the program ${path}`, name);
  return access(path, constants.X_OK).then(
    () => ok(`notices go to the program ${basename(path)}`, name),
    (error: NodeJS.ErrnoException) =>
      fail(
        `notify.command names ${path}, which can't be run (${error.code}): correct it, or sudo chmod 755 ${path}`,
        name,
      ),
  );
}
