// Records how long each test file took: a line of JSON in the file that LATCHKEY_TEST_TIMES names.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cpuSecondsWithChildren } from './processes.ts';

const file = process.env['LATCHKEY_TEST_TIMES'];
if (file !== undefined) {
  const begun = performance.now();
  const cpu = cpuSecondsWithChildren();
  const name = relative(process.cwd(), expect.getState().testPath ?? 'unknown');
  afterAll(() => {
    const wall = (performance.now() - begun) / 1000;
    appendFileSync(file, `${JSON.stringify({ name, wall, cpu: cpuSecondsWithChildren() - cpu })}\n`);
  });
}
