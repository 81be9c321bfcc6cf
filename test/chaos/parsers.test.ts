import { expect, test } from 'vitest';
import { runShortForm } from './experiment.ts';
import { checkParser } from './parser-case.ts';
import { experiment } from './parsers.experiment.ts';
import { mutatedTexts } from './parsers-mutations.ts';

test('no input from outside ends the hub, makes it hang or has it tell a secret', async () => {
  const { figures, broken } = await runShortForm(experiment);
  expect(broken).toEqual([]);
  expect(Object.keys(figures).length).toBeGreaterThanOrEqual(9);
  for (const [name, runs] of Object.entries(figures)) expect(Number(runs), name).toBeGreaterThanOrEqual(60);
});

test('what goes wrong is found, made small and told with its input', async () => {
  const trial = {
    name: 'a parser',
    inputs: mutatedTexts('abc'),
    try: (text: string) => (text.includes('%00') ? 'it fell over' : null),
  };
  const { wrong } = await checkParser(trial, 5000, { seed: 1, signal: new AbortController().signal });
  expect(wrong).toMatch(/^a parser: it fell over; the input: ".*%00.*"$/);
});
