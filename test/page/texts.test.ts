import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';
import { root } from '../project/checkout.ts';

/** Arguments for the text functions, which take strings, numbers or nothing. */
const SAMPLES = ['wallbox', 'heatpump', 'car', 'fridge'];

/** A text with arguments. */
type Text = (...args: readonly unknown[]) => unknown;

/** Every text by its path, such as `result.reasons.expired`; functions called with samples. */
function flat(texts: unknown, path = ''): Map<string, string> {
  if (typeof texts === 'string') return new Map([[path, texts]]);
  if (typeof texts === 'function') return flat(callText(texts as Text), `${path}()`);
  if (typeof texts !== 'object' || texts === null) throw new TypeError(`${path} is no text: ${typeof texts}`);
  return new Map(
    Object.entries(texts).flatMap(([key, value]) => [...flat(value, path === '' ? key : `${path}.${key}`)]),
  );
}

/** The text for sample names or, if the function takes none, for numbers. */
function callText(text: Text): unknown {
  const numbers = SAMPLES.map((_, index) => 12 + index);
  for (const samples of [SAMPLES, numbers]) {
    try {
      const result = text(...samples);
      if (result !== undefined && !/undefined|NaN|Invalid/.test(String(result))) return result;
    } catch {
      // The function takes another kind of sample.
    }
  }
  throw new TypeError(`a text takes neither names nor numbers: ${text}`);
}

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

/** Words in the markup of a template, in an attribute that is shown or read aloud, or in a notice. */
const WORDS = [
  /[>}][^<>`${}]*\p{L}[^<>`${}]*<\//u,
  />[^<>`${}&]*\p{L}[^<>`${}]*\$\{/u,
  /\b(?:alt|title|placeholder|aria-label|aria-description)="[^"$]*\p{L}/u,
  /\b(?:heading|text|title|label): '[^']*\p{L}/u,
];

test('the page sources contain no text of their own', () => {
  const folder = join(root, 'src/page');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const sources = files.filter((file) => file.endsWith('.ts') && !file.startsWith('texts/'));
  expect(sources.length).toBeGreaterThan(30);
  const found = sources.flatMap((file) =>
    WORDS.map((words) => [file, words.exec(readFileSync(join(folder, file), 'utf8'))]),
  );
  expect(found.filter(([, words]) => words !== null)).toEqual([]);
});

test('the texts use one word for one thing', () => {
  const german = [...flat(de).values()].join('\n');
  // "Geräte brauchen Sie" would be read as "you need appliances".
  expect(german).not.toMatch(/Zugriff|Platte\b|brauch(t|en) Sie\b/);
  expect([...flat(en).values()].join('\n')).not.toMatch(/\bcan not\b/);
});
