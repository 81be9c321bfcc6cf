import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { root, runCommand, temporaryFolder } from './checkout.ts';

/** What each folder of src may import besides itself and packages: the table in docs/architecture.md. */
const may: Record<string, readonly string[]> = {
  core: [],
  system: ['core'],
  clouds: ['core'],
  broker: ['core', 'system'],
  portal: ['core', 'system', 'clouds'],
  store: ['core', 'system'],
  lan: ['core', 'system'],
  page: ['core', 'system'],
  mdns: ['core', 'system'],
  metrics: ['core', 'system'],
  notify: ['core', 'system'],
  control: ['core', 'system'],
  certificates: ['core', 'system', 'broker'],
  configuration: ['core', 'system', 'certificates', 'clouds', 'notify', 'portal', 'store'],
  doctor: ['core', 'system', 'configuration', 'control', 'mdns', 'portal', 'store'],
  hub: [
    ...['core', 'system', 'broker', 'certificates', 'configuration', 'portal', 'store'],
    ...['lan', 'page', 'mdns', 'metrics', 'notify', 'control'],
  ],
  daemon: ['core', 'system', 'configuration', 'lan', 'hub'],
  cli: ['core', 'system', 'configuration', 'control', 'doctor', 'hub', 'daemon', 'emulator', 'clouds'],
  emulator: ['system', 'clouds'],
};
const layers = Object.keys(may);
const target = 'export type It = string;\nexport function it(): void {}\n';

const forms = {
  import: (from: string) => `import { it } from '${from}';\nit();\n`,
  'import of a type': (from: string) => `import type { It } from '${from}';\nexport type That = It;\n`,
  'export from': (from: string) => `export { it } from '${from}';\n`,
  'import()': (from: string) => `export const it = () => import('${from}');\n`,
};

function violationFile(from: string, to: string, form: string): string {
  return `src/${from}/to-${to}-by-${form.replaceAll(/\W+/g, '-')}.ts`;
}

function writeFiles(folder: string, files: Record<string, string>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
}

/** Biome's messages about layers and import cycles, for each file that has any. */
async function findings(files: Record<string, string>): Promise<ReadonlyMap<string, string>> {
  using folder = temporaryFolder();
  cpSync(join(root, '.biome.json'), join(folder.path, '.biome.json'));
  writeFiles(folder.path, files);
  const rules = ['--only=style/noRestrictedImports', '--only=suspicious/noImportCycles'];
  const report = ['--reporter=json', '--max-diagnostics=none', '--vcs-enabled=false'];
  const { status, stdout, stderr } = await runCommand(
    join(root, 'node_modules/.bin/biome'),
    ['lint', ...rules, ...report],
    {
      cwd: folder.path,
    },
  );
  const parsed: unknown = JSON.parse(stdout.slice(stdout.indexOf('{')));
  const found = new Map<string, string>();
  for (const { location, message, ...rest } of (parsed as BiomeReport).diagnostics) {
    found.set(location.path, `${found.get(location.path) ?? ''}${message} ${JSON.stringify(rest)}`);
  }
  expect(status, stderr).toBe(found.size === 0 ? 0 : 1);
  return found;
}

interface BiomeReport {
  readonly diagnostics: readonly { readonly message: string; readonly location: { readonly path: string } }[];
}

describe('the layers of src', () => {
  let found: ReadonlyMap<string, string>;

  beforeAll(async () => {
    const files: Record<string, string> = { 'src/main.ts': target };
    for (const layer of layers) files[`src/${layer}/it.ts`] = target;
    for (const [form, text] of Object.entries(forms)) {
      for (const from of layers) {
        for (const to of layers) if (to !== from) files[violationFile(from, to, form)] = text(`../${to}/it.ts`);
        files[violationFile(from, 'main', form)] = text('../main.ts');
      }
      files[violationFile('core', 'node', form)] = text('node:fs');
      files[violationFile('core', 'package', form)] = text('undici');
    }
    found = await findings(files);
  });

  test.each(layers)('Biome rejects an import of a forbidden layer in %s, in every form', (from) => {
    for (const to of [...layers, 'main'].filter((to) => to !== from && !may[from]?.includes(to))) {
      for (const form of Object.keys(forms)) {
        expect(found.get(violationFile(from, to, form)), `${form} ${to}`).toContain(`src/${from} may import only`);
      }
    }
  });

  test.each(layers)('Biome permits the imports that %s may have', (from) => {
    for (const to of may[from] ?? []) {
      for (const form of Object.keys(forms))
        expect(found.get(violationFile(from, to, form)), `${form} ${to}`).toBeUndefined();
    }
  });

  test.each(['node', 'package'])('Biome rejects any %s module in core', (what) => {
    for (const form of Object.keys(forms)) {
      expect(found.get(violationFile('core', what, form)), form).toContain('src/core is pure');
    }
  });
});

/** A source file, by its path in `src`, and the paths there that it imports. */
interface Source {
  readonly path: string;
  readonly imports: readonly string[];
}

/** All source files of a checkout. @param checkout its folder */
function sourcesIn(checkout: string): Source[] {
  const src = join(checkout, 'src');
  return globSync('**/*.ts', { cwd: src })
    .sort()
    .map((path) => {
      const text = readFileSync(join(src, path), 'utf8');
      const imports = text.matchAll(/(?:\bfrom|\bimport\(|^import) ?'(\.[^']+)'/gm);
      return { path, imports: [...imports].map(([, to = '']) => normalize(join(dirname(path), to))) };
    });
}

/**
 * The imports between folders of one layer that import each other, each pair of folders by two files. What is in a
 * sub-folder counts as in the folder; a folder and its own sub-folders are no pair.
 */
function mutualImports(sources: readonly Source[]): string[] {
  const found = new Map<string, string>();
  for (const { path, imports } of sources) {
    for (const imported of imports) {
      const [from, to] = [dirname(path).split('/'), dirname(imported).split('/')];
      const parting = from.findIndex((name, index) => name !== to[index]);
      if (parting < 1 || parting === to.length) continue;
      const pair = [from, to].map((folders) => folders.slice(0, parting + 1).join('/'));
      found.set(pair.join(' '), `${path} imports ${imported}`);
    }
  }
  return [...found].flatMap(([pair, one]) => {
    const other = found.get(pair.split(' ').reverse().join(' '));
    return other !== undefined && one < other ? [`${one}, and ${other}`] : [];
  });
}

/** The parts of the broker that import the file that puts them together. */
function importersOfBroker(sources: readonly Source[]): string[] {
  return sources
    .filter(({ path, imports }) => /^broker\/.*\//.test(path) && imports.includes('broker/open-broker.ts'))
    .map(({ path }) => path);
}

test('no two folders of a layer import each other, and no part of the broker imports the whole', () => {
  const sources = sourcesIn(root);
  expect(mutualImports(sources)).toEqual([]);
  expect(importersOfBroker(sources)).toEqual([]);
});

test.each(Object.entries(forms))(
  'two folders that import each other by %s are found with the files',
  (_, importing) => {
    using folder = temporaryFolder();
    writeFiles(folder.path, {
      'src/store/a/one.ts': importing('../b/two.ts'),
      'src/store/b/two.ts': target,
      'src/store/b/deep/three.ts': importing('../../a/four.ts'),
      'src/store/a/four.ts': importing('./deep/five.ts'),
      'src/store/a/deep/five.ts': importing('../four.ts'),
      'src/store/six.ts': importing('./b/two.ts'),
      'src/store/b/seven.ts': importing('../six.ts') + importing('../../system/b/eight.ts'),
      'src/system/b/eight.ts': importing('../../store/b/seven.ts'),
      'src/broker/open-broker.ts': importing('./a/nine.ts'),
      'src/broker/administration.ts': importing('./open-broker.ts'),
      'src/broker/a/nine.ts': importing('../open-broker.ts'),
    });
    const sources = sourcesIn(folder.path);
    expect(mutualImports(sources)).toEqual([
      'store/a/one.ts imports store/b/two.ts, and store/b/deep/three.ts imports store/a/four.ts',
    ]);
    expect(importersOfBroker(sources)).toEqual(['broker/a/nine.ts']);
  },
);

test('no source folder contains more than 20 files of code', () => {
  // Data files of one kind, such as the presets, are found by their names.
  const files = globSync('src/**/*.*', { cwd: root }).filter((file) => !file.endsWith('.json'));
  const crowded = [...Map.groupBy(files, (file) => dirname(file))].filter(([, siblings]) => siblings.length > 20);
  expect(Object.fromEntries(crowded)).toEqual({});
});

test.each([
  [
    'values',
    "import { b } from './b.ts';\nexport const a = () => b;\n",
    "import { a } from './a.ts';\nexport const b = () => a;\n",
  ],
  [
    'types',
    "import type { B } from './b.ts';\nexport type A = B[];\n",
    "import type { A } from './a.ts';\nexport type B = A[];\n",
  ],
])('Biome rejects an import cycle of %s', async (_what, a, b) => {
  const found = await findings({ 'src/broker/a.ts': a, 'src/broker/b.ts': b });
  expect([...found.keys()].sort()).toEqual(['src/broker/a.ts', 'src/broker/b.ts']);
});
