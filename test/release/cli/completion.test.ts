import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { runShell } from '../../cli/command.ts';
import { describeShell, folder, splitOffers } from '../../cli/manual/completion-offers.ts';

describeShell('fish', async (lines, env) => {
  const commands = lines.map((line) => `complete -C '${line}'; echo ===`).join('\n');
  writeFileSync(join(folder, 'questions.fish'), `cd ${folder}; source ./fish\n${commands}\n`);
  const { status, stdout, stderr } = await runShell(`/usr/bin/fish --no-config ${join(folder, 'questions.fish')}`, env);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return splitOffers(stdout).map((found) => found.map((line) => line.split('\t')[0] ?? ''));
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
  const child = spawn('/usr/bin/script', ['-qefc', 'stty cols 200 rows 250; exec /usr/bin/zsh -i', '/dev/null'], {
    env: { ...env, ZDOTDIR: folder, TERM: 'xterm' },
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
  return splitOffers(output().replace('started\n', ''));
});
