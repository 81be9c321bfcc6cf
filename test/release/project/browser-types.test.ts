import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, runCommand, temporaryFolder } from '../../project/checkout.ts';

/** The sources that run in a browser: their DOM types are visible to everything that is compiled with them. */
const BROWSER = ['src/emulator/console/browser', 'src/page/browser'];

test('only the sources that run in a browser need the types of a browser', async () => {
  using folder = temporaryFolder();
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: true,
      incremental: true,
      tsBuildInfoFile: join(root, '.cache/browser-types.tsbuildinfo'),
      rootDir: root,
      typeRoots: [join(root, 'node_modules/@types')],
    },
    include: [join(root, 'src')],
    exclude: BROWSER.map((folder) => join(root, folder)),
  };
  writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify(project));
  const { stdout } = await runCommand(join(root, 'node_modules/.bin/tsc'), ['-p', folder.path], { cwd: root });
  expect(stdout).toBe('');
});
