import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { experiment } from '../../chaos/soak.experiment.ts';

/** Every kind of fault of the emulator, for both origins if it has one. */
const FAULTS = [
  ...['status', 'redirect', 'not_json', 'delay', 'hang', 'reset_before', 'commit_then_drop', 'truncate', 'slow_body'],
  ...['content_type', 'change_members', 'oversize', 'wrong_date'],
  ...['tls_failure (base)', 'tls_failure (frontend)', 'origin_down (base)', 'origin_down (frontend)'],
];

test('under load and every fault all issued tokens are right, no grant is lost and nothing stays open', async () => {
  const figures = await runShortForm(experiment);
  const count = (name: string) => Number.parseInt(String(figures[name]), 10);
  expect(count('token requests')).toBeGreaterThanOrEqual(300);
  expect(count('tokens issued')).toBeGreaterThan(100);
  expect(count('pairings under faults')).toBeGreaterThan(0);
  // Each step has succeeded at least once, except those that a fault may have made fail.
  expect(figures['steps of the installer']).toMatch(
    /^add [1-9].*page [1-9].*metrics [1-9].*backup [1-9].*reload [1-9].*rotate CA 1$/,
  );
  const met = String(figures['faults']).split(', ');
  expect(met.map((each) => each.replace(/ [1-9]\d*$/, '')).toSorted()).toEqual(FAULTS.toSorted());
});
