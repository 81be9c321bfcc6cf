import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './checkout.ts';

const PAGES = globSync(['*.md', 'docs/**/*.md'], { cwd: root }).sort();
const SOURCES = globSync(['src/**/*.ts', 'test/**/*.ts', 'scripts/*.d/**/*.ts'], { cwd: root });

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

/** Inline code and the lines of shell blocks. */
function codeIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) => block.split('\n'));
  const inline = [...text.replaceAll(/^```.*?^```/gms, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  return [...blocks, ...inline];
}

/** The anchors that GitHub generates for the headings. */
function anchorsIn(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-');
  return new Set(headings.map(slug));
}

/** The first file or command that a command line names and this checkout lacks, or null. */
function missingIn(command: string): string | null {
  const [, script = '', rest = ''] = /(?:^|\s)\.\/(scripts\/[\w-]+)(.*)$/.exec(command.replace(/ +#.*$/, '')) ?? [];
  if (script === '') return null;
  if (!existsSync(join(root, script))) return script;
  const words = rest
    .trim()
    .split(/\s+/)
    .filter((word) => /^[a-z][\w./*-]*$/.test(word));
  if (script === 'scripts/chaos') {
    const [, experiment] = /--only (\S+)/.exec(rest) ?? [];
    const file = `test/chaos/${experiment}.experiment.ts`;
    return experiment === undefined || /^[A-Z]/.test(experiment) || existsSync(join(root, file)) ? null : file;
  }
  if (script !== 'scripts/test') return null;
  const tests = globSync('test/**/*.test.ts', { cwd: root });
  return words.find((filter) => !tests.some((file) => file.includes(filter))) ?? null;
}

describe.each(PAGES)('the page %s', (page) => {
  const text = read(page);

  test('the page names only files and commands that exist in the checkout', () => {
    const paths = codeIn(text).filter((code) => /^\.?\/?(test|scripts|src|docs)\/[\w./*-]+$/.test(code));
    const gone = paths.filter((path) => globSync(path, { cwd: root }).length === 0);
    // Most sources are named by the end of their path.
    const sources = codeIn(text).filter((code) => /^[\w/-]+\.ts$/.test(code));
    const unknown = sources.filter((source) => !SOURCES.some((path) => `/${path}`.endsWith(`/${source}`)));
    expect([...gone, ...unknown]).toEqual([]);
    expect(
      codeIn(text)
        .map(missingIn)
        .filter((missing) => missing !== null),
    ).toEqual([]);
  });

  test('the page links only to pages and headings that exist', () => {
    const links = [...text.matchAll(/\]\((?![a-z]+:)([^)\s]*)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && target.endsWith('.md') && !anchorsIn(read(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

test('docs/reliability.md names a test of the first tier and the command of its long form for each promise', () => {
  const [, section = ''] = read('docs/reliability.md').split('## The promises\n');
  const [table = ''] = section.trim().split('\n\n');
  const rows = table
    .split('\n')
    .slice(2)
    .map((row) => row.split(' | '));
  expect(rows.length).toBeGreaterThan(10);
  const experiments = globSync('test/chaos/*.experiment.ts', { cwd: root });
  expect(experiments.length).toBeGreaterThan(5);
  for (const [promise = '', , short = '', long = ''] of rows) {
    const tests = codeIn(short).filter((code) => code.endsWith('.test.ts') && !code.startsWith('test/release/'));
    expect(tests.length, promise).toBeGreaterThan(0);
    expect(long, promise).toMatch(/\.\/scripts\/|all of it is in the suite/);
  }
  for (const experiment of experiments) {
    const name = /([\w-]+)\.experiment\.ts$/.exec(experiment)?.[1];
    expect(table).toContain(`\`./scripts/chaos --only ${name}\``);
  }
});

test('each example that runs the hub in a container forbids core dumps, and none has the address of a login in it', () => {
  const examples = PAGES.flatMap((page) => {
    const commands = read(page).replaceAll('\\\n', ' ').split('\n');
    return commands.filter((line) => /\b(?:podman|docker) run\b/.test(line) && /\blatchkey:[0-9]/.test(line));
  });
  expect(examples.length).toBeGreaterThan(3);
  // What the last one leaves out stands in the first one.
  expect(examples.filter((example) => !/--ulimit core=0|…/.test(example))).toEqual([]);
  const [, compose = ''] = read('docs/container.md').split('\nservices:\n');
  expect(compose).toContain('ulimits: {core: 0}');
  expect(PAGES.filter((page) => /--paste ["']?https?:/.test(read(page)))).toEqual([]);
});
