import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { MAIN } from '../../support/program.ts';
import { runLatchkey, runShell, shareFakeAdministration } from '../command.ts';
import { allHelpTexts, type CommandHelp } from './help-texts.ts';

const folder = mkdtempSync(join(tmpdir(), 'lk-completion-'));
const missing = (program: string) => !existsSync(`/usr/bin/${program}`);

const hub = shareFakeAdministration();
let helps: CommandHelp[];

beforeAll(async () => {
  for (const name of ['wallbox', 'washer', 'heatpump']) hub.administration.set({ name });
  hub.administration.setConnection({ name: 'heating' });
  writeFileSync(join(folder, 'latchkey'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(join(folder, 'latchkey'), 0o755);
  writeFileSync(join(folder, 'a copy.latchkey'), '');
  helps = allHelpTexts();
  for (const name of ['bash', 'zsh', 'fish']) {
    const printed = await runLatchkey(['completion', name], { LATCHKEY_CONFIG: '/nowhere.toml' });
    expect(printed).toMatchObject({ status: 0, stderr: '' });
    writeFileSync(join(folder, name), printed.stdout);
  }
});

/** Returns the completions for the beginning of each line. */
type Offers = (lines: readonly string[], env?: NodeJS.ProcessEnv) => Promise<string[][]>;

function describeShell(name: string, offers: Offers): void {
  describe.skipIf(missing(name))(`the completion of ${name}`, () => {
    test('the completion knows every command and option that the help shows', async () => {
      const groups = helps.filter(({ commands }) => commands.length > 0);
      const line = ({ path }: CommandHelp) => ['latchkey', ...path, ''].join(' ');
      const offered = await offers([...groups.map(line), ...helps.map((help) => `${line(help)}--`)]);
      for (const help of groups)
        expect(offered.shift(), line(help)).toEqual(expect.arrayContaining([...help.commands]));
      for (const help of helps) expect(offered.shift()?.toSorted(), line(help)).toEqual(help.options.toSorted());
    });

    test('the completion offers commands, subcommands, choices, files, and names of appliances and connections', async () => {
      const expected: Record<string, string[]> = {
        'latchkey unp': ['unpair'],
        'latchkey appliance r': ['remove', 'rotate-secret'],
        'latchkey emulator --basic ': ['accept', 'refuse'],
        'latchkey completion ': ['bash', 'fish', 'zsh'],
        'latchkey pair wa': ['wallbox', 'washer'],
        'latchkey --config /dev/null pair --timeout 3 hea': ['heating', 'heatpump'],
        'latchkey appliance remove h': ['heatpump'],
        'latchkey appliance move h': ['heatpump'],
        'latchkey appliance add lamp --connection h': ['heating', 'heatpump'],
        'latchkey connection remove hea': ['heating', 'heatpump'],
        'latchkey connection i': ['import'],
        'latchkey connection add h': [],
        'latchkey appliance add w': [],
        'latchkey pair --timeout w': [],
        'latchkey restore a': ['a copy.latchkey'],
        'latchkey status --config a': ['a copy.latchkey'],
      };
      const offered = await offers(Object.keys(expected));
      const found = offered.map((words) => words.map((word) => word.replaceAll('\\', '')).toSorted());
      expect(Object.fromEntries(Object.keys(expected).map((line, index) => [line, found[index]]))).toEqual(expected);
    });

    test('the completion offers no names if there is no hub', async () => {
      const nowhere = { LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere.sock' };
      expect(await offers(['latchkey pair '], nowhere)).toEqual([[]]);
    });
  });
}

const environment = (env: NodeJS.ProcessEnv = {}) => ({
  ...hub.env,
  PATH: `${folder}:${process.env['PATH']}`,
  HOME: folder,
  ...env,
});

describeShell('bash', async (lines, env) => {
  const script = `cd ${folder}; source ./bash
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"$line"
  if [[ $line == *' ' ]]; then COMP_WORDS+=(''); fi
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMP_LINE=$line; COMP_POINT=\${#line}
  _latchkey
  ((\${#COMPREPLY[@]} == 0)) || printf '%s\\n' "\${COMPREPLY[@]}"
  echo ===
done <<'END'
${lines.join('\n')}
END`;
  const { status, stdout, stderr } = await runShell(script, environment(env));
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return cut(stdout);
});

describeShell('fish', async (lines, env) => {
  const commands = lines.map((line) => `complete -C '${line}'; echo ===`).join('\n');
  writeFileSync(join(folder, 'questions.fish'), `cd ${folder}; source ./fish\n${commands}\n`);
  const { status, stdout, stderr } = await runShell(
    `fish --no-config ${join(folder, 'questions.fish')}`,
    environment(env),
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return cut(stdout).map((found) => found.map((line) => line.split('\t')[0] ?? ''));
});

// zsh completes only at a prompt, so it runs on a pseudoterminal, and `compadd` writes its matches to a file.
describeShell('zsh', async (lines, env) => {
  const found = join(folder, `zsh-found-${lines.length}`);
  writeFileSync(found, '');
  writeFileSync(
    join(folder, '.zshrc'),
    `PROMPT='ready> '; cd ${folder}; autoload -Uz compinit; compinit -u -D; source ./zsh
zstyle ':completion:*' list-prompt ''
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- $hits >>${found}
  builtin compadd "$@"
}
offer() { zle complete-word; print -r -- '===' >>${found}; BUFFER= ; zle redisplay; }
zle -N offer; bindkey '^T' offer; LISTMAX=0
print -r -- started >>${found}
`,
  );
  const child = spawn('script', ['-qefc', 'stty cols 200 rows 250; exec zsh -i', '/dev/null'], {
    env: { ...environment(env), ZDOTDIR: folder, TERM: 'xterm' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const output = () => readFileSync(found, 'utf8');
  const until = async (ready: () => boolean) => {
    for (let tries = 0; tries < 1000 && !ready(); tries++) await sleep(20);
    expect(ready(), output()).toBe(true);
  };
  await until(() => output().startsWith('started'));
  for (const [index, line] of lines.entries()) {
    child.stdin.write(`${line}\u0014`);
    await until(() => output().split('===\n').length === index + 2);
  }
  child.stdin.end('exit\r');
  child.kill();
  return cut(output().replace('started\n', ''));
});

function cut(stdout: string): string[][] {
  return stdout
    .split('===\n')
    .slice(0, -1)
    .map((part) => part.split('\n').filter((line) => line !== ''));
}
