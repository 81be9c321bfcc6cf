import { Argument, Command } from 'commander';

/** `latchkey completion SHELL` */
export function completionCommand(): Command {
  return new Command('completion')
    .description("print a shell's completion of these commands: source <(latchkey completion bash)")
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string, _options: unknown, command: Command) => {
      const [{ definitionOf }, script] = await Promise.all([import('./commands.ts'), scriptFor(shell)]);
      process.stdout.write(script(definitionOf(command)));
    });
}

/** Loaded only where it is needed. */
async function scriptFor(shell: string) {
  switch (shell) {
    case 'zsh':
      return (await import('./zsh.ts')).zshCompletion;
    case 'fish':
      return (await import('./fish.ts')).fishCompletion;
    default:
      return (await import('./bash.ts')).bashCompletion;
  }
}
