import { Argument, Command } from 'commander';
import { systemClock } from '../../system/clock.ts';

/** `latchkey completion SHELL` */
export function completionCommand(): Command {
  return new Command('completion')
    .description('print a script that completes these commands in a shell: source <(latchkey completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string, _options: unknown, command: Command) => {
      const [{ programDefinition }, completionScript] = await Promise.all([
        import('./command-definition.ts'),
        loadCompletion(shell),
      ]);
      process.stdout.write(completionScript(programDefinition(command)));
    });
}

/** Loads only the module of this shell. */
async function loadCompletion(shell: string) {
  switch (shell) {
    case 'zsh':
      return (await import('./zsh.ts')).zshCompletion;
    case 'fish':
      return (await import('./fish.ts')).fishCompletion;
    default:
      return (await import('./bash.ts')).bashCompletion;
  }
}

/**
 * `latchkey man`, which help does not show: it prints the page for packages. If `SOURCE_DATE_EPOCH` (seconds since
 * 1970) is set, the page has that date, so that package builds are reproducible.
 */
export function manCommand(): Command {
  return new Command('man').description('print the manual page').action(async (_options: unknown, command: Command) => {
    const [{ programDefinition }, { manPage }] = await Promise.all([
      import('./command-definition.ts'),
      import('./man-page.ts'),
    ]);
    const epoch = process.env['SOURCE_DATE_EPOCH'];
    const now = new Date(epoch === undefined ? systemClock('').now().wall : 1000 * Number(epoch));
    process.stdout.write(manPage(programDefinition(command), now.toISOString().slice(0, 10)));
  });
}
