import { type CommandDefinition, everyCommand, type OptionDefinition, type Values } from './commands.ts';

/** The completion of zsh: a function for each command, by `_arguments`. It may be sourced, or lie where `$fpath` leads. */
export function zshCompletion(program: CommandDefinition): string {
  return `#compdef latchkey
# Completion of latchkey for zsh: source <(latchkey completion zsh)
_latchkey_appliances() {
  local -a names limit
  (( $+commands[timeout] )) && limit=(timeout 5)
  names=(\${(f)"$($limit latchkey appliance list --names \${opt_args[--config]:+--config} \${(Q)opt_args[--config]} 2>/dev/null)"})
  compadd -a names
}
${everyCommand(program)
  .map((command) => completionOf(command, program))
  .join('\n')}
if [[ $funcstack[1] == _latchkey ]]; then
  _latchkey "$@"
elif (( $+functions[compdef] )); then
  compdef _latchkey latchkey
fi
`;
}

function completionOf(command: CommandDefinition, program: CommandDefinition): string {
  const options = command.options.map((option) => optionSpec(option, program));
  return command.commands.length > 0 ? group(command, options) : leaf(command, options, program);
}

function leaf(command: CommandDefinition, options: readonly string[], program: CommandDefinition): string {
  const operands = command.arguments.map(({ name, values, variadic }, index) =>
    quoted(`${variadic ? '*' : index + 1}:${plain(name)}:${action(values, program)}`),
  );
  return `${functionOf(command)}() {
  ${['_arguments', ...options, ...operands].join(' \\\n    ')}
}`;
}

function group(command: CommandDefinition, options: readonly string[]): string {
  const names = command.commands.map(({ name, description }) => `    ${quoted(`${name}:${description}`)}`);
  const calls = command.commands.map((child) => `    ${child.name}) ${functionOf(child)} ;;`);
  return `${functionOf(command)}() {
  local curcontext="$curcontext" state line
  local -a below
  below=(
${names.join('\n')}
  )
  ${['_arguments -C', ...options, "'1:command:->command'", "'*::argument:->argument'"].join(' \\\n    ')} && return
  case $state in
  command) _describe command below ;;
  argument)
    case $line[1] in
${calls.join('\n')}
    esac ;;
  esac
}`;
}

function optionSpec({ name, description, values }: OptionDefinition, program: CommandDefinition): string {
  const told = `[${description.replaceAll(/[[\]\\:]/g, '\\$&')}]`;
  return quoted(values === null ? `${name}${told}` : `${name}=${told}:value:${action(values, program)}`);
}

function action(values: Values, program: CommandDefinition): string {
  switch (values.kind) {
    case 'choices':
      return `(${values.choices.join(' ')})`;
    case 'command':
      return `(${program.commands.map(({ name }) => name).join(' ')})`;
    case 'file':
      return '_files';
    case 'appliance':
      return '_latchkey_appliances';
    case 'any':
      return ' ';
  }
}

function functionOf({ path }: CommandDefinition): string {
  return `_${path.join('_').replaceAll('-', '_')}`;
}

function plain(name: string): string {
  return name.replaceAll(':', ' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
