import { type CommandDefinition, everyCommand, type Values } from './commands.ts';

/** The completion of bash 3.2 or later, of one word at a time. */
export function bashCompletion(program: CommandDefinition): string {
  const commands = everyCommand(program);
  const steps = commands.flatMap(({ path, commands: below }) => below.map(({ name }) => quoted([...path, name])));
  const taking = commands.flatMap(({ path, options }) =>
    options.filter(({ values }) => values !== null).map(({ name }) => `'${path.join(' ')}:${name}'`),
  );
  const values = commands.flatMap(({ path, options }) =>
    options.flatMap((option) =>
      option.values === null
        ? []
        : [`    '${path.join(' ')}:${option.name}') ${suggestion(option.values, program)}; return ;;`],
    ),
  );
  const options = commands.map(
    ({ path, options: own }) => `      ${quoted(path)}) _latchkey_words '${own.map(({ name }) => name).join(' ')}' ;;`,
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
_latchkey_appliances() {
  local limit=
  if command -v timeout >/dev/null; then limit='timeout 5'; fi
  if [[ -n $config ]]; then _latchkey_words "$($limit latchkey appliance list --names --config "$config" 2>/dev/null)"
  else _latchkey_words "$($limit latchkey appliance list --names 2>/dev/null)"; fi
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
      ${alternatives(taking)}) skip=$word; continue ;;
    esac
    case "$path $word" in
      ${alternatives(steps)}) path="$path $word"; count=0 ;;
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
${commands.flatMap((command) => operands(command, program)).join('\n')}
  esac
}
complete -F _latchkey latchkey
`;
}

/** What is suggested for each of a command's arguments, or for the name of a command below it. */
function operands({ path, commands, arguments: own }: CommandDefinition, program: CommandDefinition): string[] {
  const at = path.join(' ');
  if (commands.length > 0) return [`    '${at}:0') _latchkey_words '${commands.map(({ name }) => name).join(' ')}' ;;`];
  return own.map(({ values, variadic }, index) => {
    const place = variadic ? `'${at}':*` : `'${at}:${index}'`;
    return `    ${place}) ${suggestion(values, program)} ;;`;
  });
}

function suggestion(values: Values, program: CommandDefinition): string {
  switch (values.kind) {
    case 'choices':
      return `_latchkey_words '${values.choices.join(' ')}'`;
    case 'command':
      return `_latchkey_words '${program.commands.map(({ name }) => name).join(' ')}'`;
    case 'file':
      return '_latchkey_files';
    case 'appliance':
      return '_latchkey_appliances';
    case 'any':
      return ':';
  }
}

function alternatives(words: readonly string[]): string {
  return words.join(' | \\\n      ');
}

function quoted(path: readonly string[]): string {
  return `'${path.join(' ')}'`;
}
