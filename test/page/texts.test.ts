import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';
import { root } from '../project/checkout.ts';
import { flat } from './flat-texts.ts';

/** Texts that are the same in English and in German: names, units and words of both. */
const SAME_IN_BOTH = new Set(['Code', ', ', '.', 'Name', 'Portal', 'Hub', 'Latchkey', 'QR-Code', 'Version']);

const english = flat(en);
const german = flat(de);

describe('the texts of the pages', () => {
  test('the texts of all languages have the same keys, and none is empty', () => {
    expect([...german.keys()].toSorted()).toEqual([...english.keys()].toSorted());
    expect(english.size).toBeGreaterThan(60);
    for (const texts of [english, german]) {
      for (const [path, text] of texts) expect(text, path).not.toBe('');
    }
  });

  test('no German text is left in English by mistake', () => {
    const left = [...german].filter(([path, text]) => text === english.get(path) && !SAME_IN_BOTH.has(text));
    expect(left).toEqual([]);
  });

  test('the texts use the quotation marks and apostrophes of their language', () => {
    for (const [path, text] of [...english, ...german]) expect(text, path).not.toMatch(/["']/);
    for (const [path, text] of german) {
      // In German “ ends a quotation, and ” is not used.
      expect(text.split('„').length, path).toBe(text.split('“').length);
      expect(text, path).not.toContain('”');
    }
  });

  test('the German texts use the formal address', () => {
    for (const [path, text] of german) expect(text, path).not.toMatch(/\b(du|dir|dich|dein\w*|euch)\b/i);
  });
});

describe('the sources of the pages', () => {
  const folder = join(root, 'src/page');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('texts/'),
  );

  test.each(files)('the page source %s contains no text of its own', (file) => {
    expect(wordsIn(readFileSync(join(folder, file), 'utf8'))).toEqual([]);
  });

  test.each([
    ['between tags', 'html`<p>Log in again</p>`', ['Log in again']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    ['in a template inside another', "html`<p>${a ? html`<b>Now</b>` : ''}</p>`", ['Now']],
    ['in what a screen reader says', 'html`<img alt="A picture">`', ['A picture']],
    [
      'in what a notice says',
      "sendNotice(reply, 200, context, { severity: 'bad', heading: 'Not there' })",
      ['Not there'],
    ],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    ['nowhere', 'html`<p class="quiet" id="it">${texts.x} – !${y}</p>`', []],
  ])('the check of the page sources finds text %s', (_, source, found) => {
    expect(wordsIn(source)).toEqual(found);
  });
});

/** The words in a source that a person would read: texts in templates and notices. */
function wordsIn(source: string): string[] {
  const notices = [...source.matchAll(/\b(?:heading|text|title|label): '([^']*\p{L}[^']*)'/gu)].map(
    ([, words = '']) => words,
  );
  return [...templates(source).flatMap(readable), ...notices];
}

/** The texts that a person reads or hears from a template's HTML. */
function readable(markup: string): string[] {
  const attributes = [...markup.matchAll(/\b(?:alt|title|placeholder|aria-label|aria-description)="([^"]*)"/g)];
  const bare = markup
    .replaceAll(/<(script|style)\b[^>]*>.*?<\/\1>/gs, ' ')
    .replaceAll(/<!?[/\w](?:"[^"]*"|[^>"])*>/g, '\n')
    .replaceAll(/&\w+;/g, ' ');
  return [...bare.split('\n'), ...attributes.map(([, words = '']) => words)]
    .map((words) => words.trim())
    .filter((words) => /\p{L}/u.test(words));
}

/** The markup of every `html` template in a source, without the substitutions; templates inside these count too. */
function templates(source: string): string[] {
  const found: string[] = [];
  for (const { index } of source.matchAll(/\bhtml`/g)) {
    let markup = '';
    let at = index + 5;
    while (at < source.length && source[at] !== '`') {
      if (source.startsWith('${', at)) at = afterHole(source, at + 2);
      else markup += source[at++];
    }
    found.push(markup.replaceAll('!', ''));
  }
  return found;
}

/** The index after the substitution that begins at `at`. */
function afterHole(source: string, at: number): number {
  let depth = 1;
  let here = at;
  while (depth > 0 && here < source.length) {
    const character = source[here++];
    if (character === '{') depth++;
    else if (character === '}') depth--;
    else if (character === '`') here = afterTemplate(source, here);
    else if (character === "'") here = source.indexOf("'", here) + 1;
  }
  return here;
}

function afterTemplate(source: string, at: number): number {
  let here = at;
  while (here < source.length && source[here] !== '`')
    here = source.startsWith('${', here) ? afterHole(source, here + 2) : here + 1;
  return here + 1;
}

test.each([
  [en, 1, 3, 'It is connected', '1 of 3 is connected'],
  [en, 2, 3, 'Both are connected', '2 of 3 are connected'],
  [en, 3, 4, 'All 3 are connected', '3 of 4 are connected'],
  [de, 1, 3, 'Verbindung hergestellt', '1 von 3 ist verbunden'],
  [de, 2, 3, 'Beide sind verbunden', '2 von 3 sind verbunden'],
  [de, 3, 4, 'Alle 3 sind verbunden', '3 von 4 sind verbunden'],
])('case %$: the texts of pairing batches express numbers as people do', ({ batch }, count, all, done, notAll) => {
  expect(batch.allConnected(count)).toBe(done);
  expect(batch.someConnected(count, all)).toBe(notAll);
});

test('the texts use one word for one thing', () => {
  const german = [...flat(de).values()].join('\n');
  // "Geräte brauchen Sie" would be read as "you need appliances".
  expect(german).not.toMatch(/Zugriff|Platte\b|brauch(t|en) Sie\b/);
  expect([...flat(en).values()].join('\n')).not.toMatch(/\bcan not\b/);
});
