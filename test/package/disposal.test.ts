import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundle } from '../../scripts/deb.d/bundle.ts';

it("the packaged program keeps `using` natively, as esbuild's version carries an error into the next loop round", async (ctx) => {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-bundle-'));
  ctx.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await bundle(join(import.meta.dirname, '../..'), 'x64', folder);
  const program = globSync('**/*.js', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'));
  expect(program.some((text) => text.includes('await using '))).toBe(true);
  expect(program.filter((text) => text.includes('__callDispose'))).toEqual([]);
});
