import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Source, sourcesIn } from './architecture.d/sources.ts';

const root = join(import.meta.dirname, '..');
const PAGE = join(root, 'docs/architecture.md');
const PICTURE = /```mermaid\n.*?```\n/s;

const [argument] = process.argv.slice(2);
if (argument === '--write') {
  writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(PICTURE, picture(sourcesIn(root))));
} else {
  const sources = argument === undefined ? sourcesIn(root) : sourcesAt(argument);
  process.stdout.write(`${picture(sources)}\n${sizes(sources)}`);
}

function sourcesAt(commit: string): Source[] {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-architecture-'));
  try {
    const archive = execFileSync('git', ['archive', commit, 'src'], { cwd: root, maxBuffer: 1 << 28 });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    return sourcesIn(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * A Mermaid diagram of the imports. An arrow that other arrows imply is left out, so that the diagram stays readable.
 */
function picture(sources: readonly Source[]): string {
  const imports = new Map<string, Set<string>>();
  for (const source of sources) {
    const from = topFolderOf(source.path);
    const to = source.imports.map(topFolderOf).filter((folder) => folder !== from);
    imports.set(from, new Set([...(imports.get(from) ?? []), ...to]));
  }
  const arrows = [...imports].flatMap(([from, all]) => {
    const implied = new Set([...all].flatMap((folder) => [...reachedFrom(folder, imports)]));
    const drawn = [...all].filter((to) => !implied.has(to)).sort();
    return drawn.map((to) => `  ${from} --> ${to}`);
  });
  return ['```mermaid', 'graph TD', ...arrows, '```', ''].join('\n');
}

/** The folders that a folder imports, directly or through others. */
function reachedFrom(folder: string, imports: ReadonlyMap<string, ReadonlySet<string>>, reached = new Set<string>()) {
  for (const next of imports.get(folder) ?? []) {
    if (reached.has(next)) continue;
    reached.add(next);
    reachedFrom(next, imports, reached);
  }
  return reached;
}

/** The folder of `src` that a file is in. */
function topFolderOf(path: string): string {
  return path.includes('/') ? (path.split('/')[0] ?? '') : path.replace('.ts', '');
}

function sizes(sources: readonly Source[]): string {
  const folders = [...new Set(sources.map(({ path }) => topFolderOf(path)))];
  const rows = folders.map((folder) =>
    tableRow(
      folder,
      sources.filter(({ path }) => topFolderOf(path) === folder),
      sources,
    ),
  );
  const head = [
    '| folder | files | most in one folder | lines | median | over 300 | with one importer |',
    '|---|---|---|---|---|---|---|',
  ];
  return [...head, ...rows, tableRow('all', sources, sources), ''].join('\n');
}

function tableRow(name: string, some: readonly Source[], all: readonly Source[]): string {
  const lines = some.map((source) => source.lines).sort((a, b) => a - b);
  const sum = lines.reduce((a, b) => a + b, 0);
  const sideBySide = Map.groupBy(some, ({ path }) => dirname(path));
  const most = Math.max(...[...sideBySide.values()].map((files) => files.length));
  const once = some.filter(({ path }) => all.filter(({ imports }) => imports.includes(path)).length === 1);
  const median = lines[Math.floor(lines.length / 2)] ?? 0;
  const long = lines.filter((count) => count > 300).length;
  return `| ${[name, some.length, most, sum, median, long, once.length].join(' | ')} |`;
}
