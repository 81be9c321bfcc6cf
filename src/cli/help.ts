import { Command } from 'commander';

/** `latchkey help [command…]` */
export function helpCommand(): Command {
  return new Command('help')
    .description('show the help of a command')
    .argument('[command...]', 'its name, with that of its group before it')
    .action((names: readonly string[], _options: unknown, command: Command) => {
      let found = command.parent ?? command;
      for (const name of names) {
        found = found.commands.find((candidate) => candidate.name() === name) ?? unknown(found, name);
      }
      found.help();
    });
}

/** Refuses `--help` behind the name of a command that there is not, where commander would show the help of its group. */
export function refuseUnknown(group: Command): void {
  group.addHelpText('before', () => {
    const [name] = group.args;
    const isKnown = name === 'help' || group.commands.some((command) => command.name() === name);
    if (name === undefined || name.startsWith('-') || isKnown) return '';
    return unknown(group, name);
  });
}

function unknown(group: Command, name: string): never {
  return group.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' });
}
