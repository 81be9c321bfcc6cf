import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runCommand } from '../project/checkout.ts';
import { logFile } from '../support/logs.ts';

it('scripts/demo --auto pairs four appliances, two of them with one login, refreshes their tokens, and issues no invalid token', async () => {
  const { status, stdout, stderr } = await runCommand('./scripts/demo', ['--auto', '--for', '10s', '--json']);
  writeFileSync(logFile('demo-auto'), stdout + stderr);
  expect(status, stderr).toBe(0);
  const { appliances, hand_outs, bad_hand_outs, refreshes } = JSON.parse(stdout) as Record<string, number>;
  expect({ appliances, bad_hand_outs }).toEqual({ appliances: 4, bad_hand_outs: 0 });
  expect(hand_outs).toBeGreaterThan(4);
  // Tokens of 10 s are due at 7.5 to 8.5 s.
  expect(refreshes).toBeGreaterThanOrEqual(1);
  for (const name of ['wallbox', 'heat-pump', 'solar']) expect(stderr).toMatch(new RegExp(`${name} +✓ is connected`));
  expect(stderr).toMatch(/solar +is one login that inverter and dashboard share/);
  for (const name of ['inverter', 'dashboard']) expect(stderr).toMatch(new RegExp(`${name} +✓ has a new token`));
});
