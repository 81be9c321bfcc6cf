import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { root, runCommand } from '../project/checkout.ts';
import { createAgent } from '../support/agent.ts';
import { eventually } from '../support/hub-process.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';

it('scripts/demo --auto pairs four appliances, refreshes their tokens, and its page names a command that reaches its hub', async (ctx) => {
  const child = spawn(join(root, 'scripts/demo'), ['--auto', '--for', '10m', '--json'], { cwd: root });
  ctx.onTestFinished(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
    });
  }
  const ended = once(child, 'close');
  const appliances = ['wallbox', 'heat-pump', 'inverter', 'dashboard'];
  // Tokens of 10 s are due at 7.5 to 8.5 s.
  const hasTwoTokens = (name: string) => new RegExp(`(?:${name} +✓ has a new token.*){2}`, 's').test(output.stderr);
  await eventually(async () => appliances.every(hasTwoTokens), 60);
  const [, origin = '', code = ''] =
    /The hub's page .*:\n\n +(https:\/\/[^/]+)\/sign-in\/[\w-]+\n.* setup code ([A-Z-]+)/.exec(output.stderr) ?? [];
  rememberSecrets([code]);
  const trusting = createAgent({ connect: { rejectUnauthorized: false } });
  const signInPage = await (await request(`${origin}/`, { dispatcher: trusting })).body.text();
  await trusting.close();
  // The code of this hub, and not of another one on this machine.
  const command = /<code>([^<]* setup-code)<\/code>/.exec(signInPage.replaceAll('&#61;', '='))?.[1] ?? '';
  expect((await runCommand('sh', ['-c', command])).stdout).toContain(code);
  child.kill('SIGINT');
  const [status] = await ended;
  // A person is meant to see the code, and no other log has it.
  writeFileSync(logFile('demo-auto'), (output.stdout + output.stderr).replaceAll(code, 'THE-CODE'));
  expect(status, output.stderr).toBe(0);
  const { refreshes, ...counters } = JSON.parse(output.stdout) as Record<string, number>;
  expect(counters).toMatchObject({ appliances: 4, bad_hand_outs: 0 });
  expect(refreshes).toBeGreaterThanOrEqual(3);
  for (const name of ['wallbox', 'heat-pump', 'solar']) {
    expect(output.stderr).toMatch(new RegExp(`${name} +✓ is connected`));
  }
  expect(output.stderr).toMatch(/solar +is one login that inverter and dashboard share/);
});
