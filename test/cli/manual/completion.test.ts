import { expect } from 'vitest';
import { runShell } from '../command.ts';
import { describeShell, folder, splitOffers } from './completion-offers.ts';

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
  const { status, stdout, stderr } = await runShell(script, env);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return splitOffers(stdout);
});
