import type { Argument, Command, Option } from 'commander';

/** The kind of an option's or argument's value, which decides what shells suggest for it. */
export type ValueDefinition =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'appliance' | 'connection' }
  | { readonly kind: 'command' }
  | { readonly kind: 'any' };

/** An option of a command. */
export interface OptionDefinition {
  /** As it is typed, such as `--json`. */
  readonly name: string;
  /** As help shows it, such as `--timeout <duration>`. */
  readonly flags: string;
  readonly description: string;
  /** Null if the option takes no value. */
  readonly value: ValueDefinition | null;
}

/** A positional argument of a command. */
interface ArgumentDefinition {
  /** As help shows it, such as `<name>`. */
  readonly term: string;
  readonly name: string;
  readonly description: string;
  readonly variadic: boolean;
  readonly value: ValueDefinition;
}

/** A command, or the program itself. */
export interface CommandDefinition {
  /** From the program's name on, such as `['latchkey', 'appliance', 'add']`. */
  readonly path: readonly string[];
  readonly name: string;
  readonly description: string;
  /** Including the global options. */
  readonly options: readonly OptionDefinition[];
  readonly arguments: readonly ArgumentDefinition[];
  readonly commands: readonly CommandDefinition[];
}

/**
 * The commands of the program that `command` belongs to, as its help shows them, for the manual and the completions.
 */
export function programDefinition(command: Command): CommandDefinition {
  return defineCommand(rootCommand(command), [], []);
}

/** A command and all its subcommands, the outermost first. */
export function flattenCommands(definition: CommandDefinition): CommandDefinition[] {
  return [definition, ...definition.commands.flatMap(flattenCommands)];
}

function rootCommand(command: Command): Command {
  return command.parent === null ? command : rootCommand(command.parent);
}

function defineCommand(
  command: Command,
  above: readonly string[],
  inherited: readonly OptionDefinition[],
): CommandDefinition {
  const help = command.createHelp();
  const path = [...above, command.name()];
  const own = help.visibleOptions(command).map(defineOption);
  const options = [...own, ...inherited.filter(({ name }) => own.every((option) => option.name !== name))];
  return {
    path,
    name: command.name(),
    description: command.description(),
    options,
    arguments: help.visibleArguments(command).map((argument) => defineArgument(argument, command)),
    commands: help
      .visibleCommands(command)
      .map((child) => defineCommand(child, path, above.length === 0 ? own : inherited)),
  };
}

function defineOption(option: Option): OptionDefinition {
  const { flags, description, defaultValueDescription: described } = option;
  const takes = option.required || option.optional;
  return {
    name: option.long ?? option.short ?? flags,
    flags,
    description: `${description}${described === undefined ? '' : ` (default: ${described})`}`,
    value: takes ? optionValue(option) : null,
  };
}

function optionValue({ long, flags, argChoices }: Option): ValueDefinition {
  if (long === '--connection') return { kind: 'connection' };
  return defineValue(/[<[](\w+)/.exec(flags)?.[1] ?? '', argChoices);
}

function defineArgument(argument: Argument, command: Command): ArgumentDefinition {
  const { description, variadic, argChoices } = argument;
  const name = argument.name();
  const term = command.createHelp().argumentTerm(argument);
  const [open, close] = argument.required ? ['<', '>'] : ['[', ']'];
  return {
    term: `${open}${term}${variadic ? '...' : ''}${close}`,
    name,
    description,
    variadic,
    // The name of a new appliance or connection cannot be completed.
    value: nameValue(name, description) ?? defineValue(name, argChoices),
  };
}

function nameValue(name: string, description: string): ValueDefinition | null {
  const named = /^the (appliance|connection)'s name/.exec(description)?.[1];
  return name === 'name' && (named === 'appliance' || named === 'connection') ? { kind: named } : null;
}

function defineValue(name: string, choices: readonly string[] | undefined): ValueDefinition {
  if (choices !== undefined) return { kind: 'choices', choices };
  if (name === 'command') return { kind: 'command' };
  return { kind: name === 'file' || name === 'folder' ? 'file' : 'any' };
}
