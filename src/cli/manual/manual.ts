import { Argument, Command } from 'commander';
import { systemClock } from '../../system/clock.ts';

/** `latchkey completion SHELL` */
export function completionCommand(): Command {
  return new Command('completion')
    .description("print a shell's completion of these commands: source <(latchkey completion bash)")
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string, _options: unknown, command: Command) => {
      const [{ programDefinition: definitionOf }, script] = await Promise.all([
        import('./command-definition.ts'),
        loadCompletion(shell),
      ]);
      process.stdout.write(script(definitionOf(command)));
    });
}

/** Loaded only where it is needed. */
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
 * `latchkey man`, which help does not show: it writes the page that packages carry. The page bears the date of
 * `SOURCE_DATE_EPOCH` (seconds since 1970) where that is set, so that a package is the same whenever it is made.
 */
export function manCommand(): Command {
  return new Command('man').description('print the manual page').action(async (_options: unknown, command: Command) => {
    const [{ programDefinition: definitionOf }, { manPage }] = await Promise.all([
      import('./command-definition.ts'),
      import('./man-page.ts'),
    ]);
    const epoch = process.env['SOURCE_DATE_EPOCH'];
    const now = new Date(epoch === undefined ? systemClock('').now().wall : 1000 * Number(epoch));
    process.stdout.write(manPage(definitionOf(command), now.toISOString().slice(0, 10)));
  });
}
