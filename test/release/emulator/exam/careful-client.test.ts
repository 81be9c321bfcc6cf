import { expect, test } from 'vitest';
import { SITUATIONS } from '../../../../src/emulator/exam/situations/all.ts';
import { clientWith, examine } from '../../../emulator/exam/run-exam.ts';

test('a client that is right passes every situation of the exam', async () => {
  const report = await examine(clientWith());
  expect(report.results.filter(({ verdict }) => verdict !== 'passed')).toEqual([]);
  expect(report.passed).toBe(SITUATIONS.length);
});
