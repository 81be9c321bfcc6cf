import {
  type CommandDefinition,
  flattenCommands,
  type OptionDefinition,
  type ValueDefinition,
} from './command-definition.ts';

/**
 * The completion script for zsh: one function per command, with `_arguments`. Source it, or put it into a directory of
 * `$fpath`.
 */
export function zshCompletion(program: CommandDefinition): string {
  return `#compdef latchkey
# Completion of latchkey for zsh: source <(latchkey completion zsh)
_latchkey_names() {
  local -a names limit
  (( $+commands[timeout] )) && limit=(timeout 5)
  names=(\${(f)"$($limit latchkey $1 list --names \${opt_args[--config]:+--config} \${(Q)opt_args[--config]} 2>/dev/null)"})
  compadd -a names
}
_latchkey_appliance_names() { _latchkey_names appliance }
_latchkey_connection_names() { _latchkey_names connection }
${flattenCommands(program)
  .map((command) => commandFunction(command, program))
  .join('\n')}
if [[ $funcstack[1] == _latchkey ]]; then
  _latchkey "$@"
elif (( $+functions[compdef] )); then
  compdef _latchkey latchkey
fi
`;
}

function commandFunction(command: CommandDefinition, program: CommandDefinition): string {
  const options = command.options.map((option) => optionSpec(option, program));
  return command.commands.length > 0 ? groupFunction(command, options) : leafFunction(command, options, program);
}

function leafFunction(command: CommandDefinition, options: readonly string[], program: CommandDefinition): string {
  const operands = command.arguments.map(({ name, value: values, variadic }, index) =>
    quote(`${variadic ? '*' : index + 1}:${withoutColons(name)}:${completionAction(values, program)}`),
  );
  return `${functionName(command)}() {
  ${['_arguments', ...options, ...operands].join(' \\\n    ')}
}`;
}

function groupFunction(command: CommandDefinition, options: readonly string[]): string {
  const names = command.commands.map(({ name, description }) => `    ${quote(`${name}:${description}`)}`);
  const calls = command.commands.map((child) => `    ${child.name}) ${functionName(child)} ;;`);
  return `${functionName(command)}() {
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

function optionSpec({ name, description, value: values }: OptionDefinition, program: CommandDefinition): string {
  const label = `[${description.replaceAll(/[[\]\\:]/g, '\\$&')}]`;
  return quote(values === null ? `${name}${label}` : `${name}=${label}:value:${completionAction(values, program)}`);
}

function completionAction(values: ValueDefinition, program: CommandDefinition): string {
  switch (values.kind) {
    case 'choices':
      return `(${values.choices.join(' ')})`;
    case 'command':
      return `(${program.commands.map(({ name }) => name).join(' ')})`;
    case 'file':
      return '_files';
    case 'appliance':
    case 'connection':
      return `_latchkey_${values.kind}_names`;
    case 'any':
      return ' ';
  }
}

function functionName({ path }: CommandDefinition): string {
  return `_${path.join('_').replaceAll('-', '_')}`;
}

function withoutColons(name: string): string {
  return name.replaceAll(':', ' ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
