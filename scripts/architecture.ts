import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const root = join(import.meta.dirname, '..');
const PAGE = join(root, 'docs/architecture.md');
const PICTURE = /```mermaid\n.*?```\n/s;

/** A source file, by its path in `src`, and the paths there that it imports. */
interface Source {
  readonly path: string;
  readonly imports: readonly string[];
}

const drawn = picture(sourcesIn(join(root, 'src')));
if (process.argv[2] === '--write') writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(PICTURE, drawn));
else process.stdout.write(drawn);

function sourcesIn(src: string): Source[] {
  return globSync('**/*.ts', { cwd: src })
    .sort()
    .map((path) => {
      const text = readFileSync(join(src, path), 'utf8');
      const imports = text.matchAll(/(?:\bfrom|\bimport\(|^import) ?'(\.[^']+)'/gm);
      const paths = [...imports].map(([, to = '']) => normalize(join(dirname(path), to)));
      return { path, imports: paths };
    });
}

/** An arrow that follows from two others is left out: who imports the hub may import what the hub does. */
function picture(sources: readonly Source[]): string {
  const imports = new Map<string, Set<string>>();
  for (const source of sources) {
    const from = roomOf(source.path);
    const to = source.imports.map(roomOf).filter((room) => room !== from);
    imports.set(from, new Set([...(imports.get(from) ?? []), ...to]));
  }
  const arrows = [...imports].flatMap(([from, all]) => {
    const implied = new Set([...all].flatMap((room) => [...reachedFrom(room, imports)]));
    const drawn = [...all].filter((to) => !implied.has(to)).sort();
    return drawn.map((to) => `  ${from} --> ${to}`);
  });
  return ['```mermaid', 'graph TD', ...arrows, '```', ''].join('\n');
}

/** The rooms that one imports, and those that they import. */
function reachedFrom(room: string, imports: ReadonlyMap<string, ReadonlySet<string>>, reached = new Set<string>()) {
  for (const next of imports.get(room) ?? []) {
    if (reached.has(next)) continue;
    reached.add(next);
    reachedFrom(next, imports, reached);
  }
  return reached;
}

/** The folder of `src` that a file is in. */
function roomOf(path: string): string {
  return path.includes('/') ? (path.split('/')[0] ?? '') : path.replace('.ts', '');
}
