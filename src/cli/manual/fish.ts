import { type CommandDefinition, flattenCommands, type ValueDefinition } from './command-definition.ts';

/** The completion script for fish 3 or later. */
export function fishCompletion(program: CommandDefinition): string {
  const commands = flattenCommands(program);
  const steps = commands.flatMap(({ path, commands: below }) => below.map(({ name }) => quote([...path, name])));
  const taking = new Set(
    commands.flatMap(({ options }) => options.filter(({ value: values }) => values !== null).map(({ name }) => name)),
  );
  return `# Completion of latchkey for fish: latchkey completion fish | source
function __latchkey_path
    set -l path latchkey
    set -l skip
    for word in (commandline -opc)[2..-1]
        if set -q skip[1]
            set -e skip
            continue
        end
        if contains -- $word ${[...taking].join(' ')}
            set skip $word
            continue
        end
        switch "$path $word"
            case ${steps.join(' ')}
                set path "$path $word"
        end
    end
    echo $path
end
function __latchkey_at
    test (__latchkey_path) = "$argv"
end
function __latchkey_names
    set -l words (commandline -opc)
    set -l config
    if set -l at (contains -i -- --config $words)
        set config --config $words[(math $at + 1)]
    end
    set -l limit
    command -q timeout; and set limit timeout 5
    $limit latchkey $argv[1] list --names $config 2>/dev/null
end
complete -c latchkey -f
${commands.flatMap((command) => completionLines(command, program)).join('\n')}
`;
}

function completionLines(command: CommandDefinition, program: CommandDefinition): string[] {
  const at = `complete -c latchkey -n '__latchkey_at ${command.path.join(' ')}'`;
  const below = command.commands.map(({ name, description }) => `${at} -a ${name} -d ${quote([description])}`);
  const options = command.options.map(({ name, description, value: values }) => {
    const value = values === null ? '' : ` ${completionFlags(values, program, '-r')}`;
    return `${at} -l ${name.replace(/^--/, '')}${value} -d ${quote([description])}`;
  });
  const operands = command.arguments
    .filter(({ value: values }) => values.kind !== 'any')
    .map(({ value: values }) => `${at} ${completionFlags(values, program, '')}`.trimEnd());
  return [...below, ...options, ...operands];
}

/** @param required `-r` for the value of an option */
function completionFlags(values: ValueDefinition, program: CommandDefinition, required: string): string {
  const only = required === '' ? '-f' : '-x';
  switch (values.kind) {
    case 'choices':
      return `${only} -a ${quote(values.choices)}`;
    case 'command':
      return `${only} -a ${quote(program.commands.map(({ name }) => name))}`;
    case 'file':
      return `${required} -F`.trimStart();
    case 'appliance':
    case 'connection':
      return `${only} -a '(__latchkey_names ${values.kind})'`;
    case 'any':
      return only;
  }
}

/** Quotes words as one word for fish, where a backslash escapes within single quotes too. */
function quote(words: readonly string[]): string {
  return `'${words.join(' ').replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
