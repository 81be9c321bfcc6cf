import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** A source file, by its path in `src`, and the paths there that it imports. */
export interface Source {
  readonly path: string;
  readonly lines: number;
  readonly imports: readonly string[];
}

/** All source files of a checkout. @param checkout its folder */
export function sourcesIn(checkout: string): Source[] {
  const src = join(checkout, 'src');
  return globSync('**/*.ts', { cwd: src })
    .sort()
    .map((path) => {
      const text = readFileSync(join(src, path), 'utf8');
      const imports = text.matchAll(/(?:\bfrom|\bimport\(|^import) ?'(\.[^']+)'/gm);
      const paths = [...imports].map(([, to = '']) => normalize(join(dirname(path), to)));
      return { path, lines: text.split('\n').length - 1, imports: paths };
    });
}
