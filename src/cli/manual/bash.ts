import { type CommandDefinition, flattenCommands, type ValueDefinition } from './command-definition.ts';

/** The completion script for bash 3.2 or later. */
export function bashCompletion(program: CommandDefinition): string {
  const commands = flattenCommands(program);
  const steps = commands.flatMap(({ path, commands: below }) => below.map(({ name }) => quote([...path, name])));
  const taking = commands.flatMap(({ path, options }) =>
    options.filter(({ value: values }) => values !== null).map(({ name }) => `'${path.join(' ')}:${name}'`),
  );
  const values = commands.flatMap(({ path, options }) =>
    options.flatMap((option) =>
      option.value === null
        ? []
        : [`    '${path.join(' ')}:${option.name}') ${completionCode(option.value, program)}; return ;;`],
    ),
  );
  const options = commands.map(
    ({ path, options: own }) => `      ${quote(path)}) _latchkey_words '${own.map(({ name }) => name).join(' ')}' ;;`,
  );
  return `# Completion of latchkey for bash: source <(latchkey completion bash)
_latchkey_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$current"))
}
_latchkey_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$current"))
}
_latchkey_names() {
  local limit=
  if command -v timeout >/dev/null; then limit='timeout 5'; fi
  if [[ -n $config ]]; then _latchkey_words "$($limit latchkey "$1" list --names --config "$config" 2>/dev/null)"
  else _latchkey_words "$($limit latchkey "$1" list --names 2>/dev/null)"; fi
}
_latchkey() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path=latchkey config= count=0 skip= word i
  COMPREPLY=()
  # "--option=value" comes as three words.
  if [[ $current == '=' ]]; then current=
  elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then skip=\${skip:-\${COMP_WORDS[i-1]}}; continue; fi
    if [[ -n $skip ]]; then
      if [[ $skip == --config ]]; then config=\${word/#\\~/$HOME}; fi
      skip=
      continue
    fi
    case $path:$word in
      ${casePatterns(taking)}) skip=$word; continue ;;
    esac
    case "$path $word" in
      ${casePatterns(steps)}) path="$path $word"; count=0 ;;
      *\\ -*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  case $path:$previous in
${values.join('\n')}
  esac
  if [[ $current == -* ]]; then
    case $path in
${options.join('\n')}
    esac
    return
  fi
  case $path:$count in
${commands.flatMap((command) => argumentCases(command, program)).join('\n')}
  esac
}
complete -F _latchkey latchkey
`;
}

/** The suggestions for each argument of a command, or for the name of its subcommand. */
function argumentCases({ path, commands, arguments: own }: CommandDefinition, program: CommandDefinition): string[] {
  const at = path.join(' ');
  if (commands.length > 0) return [`    '${at}:0') _latchkey_words '${commands.map(({ name }) => name).join(' ')}' ;;`];
  return own.map(({ value: values, variadic }, index) => {
    const place = variadic ? `'${at}':*` : `'${at}:${index}'`;
    return `    ${place}) ${completionCode(values, program)} ;;`;
  });
}

function completionCode(values: ValueDefinition, program: CommandDefinition): string {
  switch (values.kind) {
    case 'choices':
      return `_latchkey_words '${values.choices.join(' ')}'`;
    case 'command':
      return `_latchkey_words '${program.commands.map(({ name }) => name).join(' ')}'`;
    case 'file':
      return '_latchkey_files';
    case 'appliance':
    case 'connection':
      return `_latchkey_names ${values.kind}`;
    case 'any':
      return ':';
  }
}

function casePatterns(words: readonly string[]): string {
  return words.join(' | \\\n      ');
}

function quote(path: readonly string[]): string {
  return `'${path.join(' ')}'`;
}
