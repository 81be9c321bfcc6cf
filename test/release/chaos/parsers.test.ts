import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { checkParser } from '../../chaos/parser-case.ts';
import { experiment } from '../../chaos/parsers.experiment.ts';
import { mutatedTexts } from '../../chaos/parsers-mutations.ts';

test('no external input ends or hangs the hub or makes it reveal a secret', async () => {
  const { figures, broken } = await runShortForm(experiment);
  expect(broken).toEqual([]);
  expect(Object.keys(figures).length).toBeGreaterThanOrEqual(9);
  for (const [name, runs] of Object.entries(figures)) expect(Number(runs), name).toBeGreaterThanOrEqual(60);
});

test('the parser check finds a failing input, minimizes it and reports it', async () => {
  const trial = {
    name: 'a parser',
    inputs: mutatedTexts('abc'),
    try: (text: string) => (text.includes('%00') ? 'it fell over' : null),
  };
  const { wrong } = await checkParser(trial, 5000, { seed: 1, signal: new AbortController().signal });
  expect(wrong).toMatch(/^a parser: it fell over; the input: ".*%00.*"$/);
});
