import { type Command, Option } from 'commander';
import { SWITCHES, type Switch } from '../emulator/settings/switches.ts';
import { parseDuration, parseWhole } from './terminal/duration.ts';

/** The flags for what the specification leaves open at the portal; what they give are the library's `SwitchOptions`. */
export function addSwitches(command: Command): Command {
  for (const [name, declared] of Object.entries(SWITCHES)) {
    command.addOption(
      option(
        name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
        declared,
      ),
    );
  }
  return command;
}

function option(name: string, { values, initial, nothing, description }: Switch<unknown>): Option {
  const value = values.kind === 'seconds' && initial ? `${initial}s` : initial;
  const usual = initial === null ? nothing : [value, ...(nothing === undefined ? [] : [nothing])].join(', ');
  const help = `${description} (default: ${usual})`;
  switch (values.kind) {
    case 'boolean':
      return initial === true
        ? new Option(`--no-${name}`, `turn off: ${description}`)
        : new Option(`--${name}`, description);
    case 'choice':
      return new Option(`--${name} <what>`, help).choices(Object.keys(values.choices));
    case 'count':
      return new Option(`--${name} <n>`, help).argParser(parseWhole);
    case 'seconds':
      return new Option(`--${name} <duration>`, help).argParser((text) =>
        text === '0' && values.range === 'from 0' ? 0 : parseDuration(text),
      );
    case 'regular expression':
      return new Option(`--${name} <regexp>`, help);
  }
}
