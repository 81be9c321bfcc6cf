import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A place where a secret was found. It does not contain the secret: the report is a log as well. */
export interface Leak {
  /** Counts from 1. */
  readonly line: number;
  /** The encoding in which the secret was found. */
  readonly kind: string;
}

/** The length of a prefix that reveals the secret: a log must not contain this much of its start. */
const REVEALING_LENGTH = 16;
/** Secrets are found by the hash of their first bytes, this many. */
const HEAD = 4;
const HASH_BITS = 20;

interface Needle {
  readonly kind: string;
  /** A short secret counts only as a separate word: within a longer one it may occur by chance. */
  readonly whole: boolean;
}

/**
 * Prepares a search for secrets in logs: plain, URL-encoded, as in a JSON string, in base64 (also within a longer text,
 * as in HTTP's Basic scheme), and for their first 16 characters in each of these encodings. It reads every byte once,
 * however many secrets there are.
 */
export function createSecretSearch(secrets: Iterable<string>): (log: Buffer) => Leak[] {
  const needles = new Map<string, Needle>();
  const heads = new Uint8Array(1 << HASH_BITS);
  const lengths = new Set<number>();
  for (const secret of secrets) {
    for (const part of revealingParts(secret)) {
      for (const [kind, form] of forms(part)) {
        const whole = form.length < REVEALING_LENGTH;
        const needle = form.slice(0, REVEALING_LENGTH);
        if (needle.length < HEAD || needles.has(needle)) continue;
        needles.set(needle, {
          kind: whole || form.length === REVEALING_LENGTH ? kind : `${kind}, or its start`,
          whole,
        });
        heads[hash(Buffer.from(needle, 'latin1').readUInt32BE(0))] = 1;
        lengths.add(needle.length);
      }
    }
  }
  return (log) => search(log, needles, heads, [...lengths]);
}

function search(log: Buffer, needles: ReadonlyMap<string, Needle>, heads: Uint8Array, lengths: number[]): Leak[] {
  const leaks = new Map<string, Leak>();
  let window = 0;
  let line = 1;
  for (let end = 1; end <= log.length; end += 1) {
    window = ((window << 8) | (log[end - 1] ?? 0)) >>> 0;
    const start = end - HEAD;
    if (start < 0) continue;
    if (heads[hash(window)] === 1) {
      for (const length of lengths) {
        const needle = needles.get(log.toString('latin1', start, start + length));
        if (needle === undefined || (needle.whole && !isWord(log, start, start + length))) continue;
        leaks.set(`${line} ${needle.kind}`, { line, kind: needle.kind });
      }
    }
    if (log[start] === 0x0a) line += 1;
  }
  return [...leaks.values()];
}

function hash(head: number): number {
  return Math.imul(head, 0x9e3779b1) >>> (32 - HASH_BITS);
}

function isWord(log: Buffer, start: number, end: number): boolean {
  const surrounding = log.toString('latin1', Math.max(0, start - 1), start) + log.toString('latin1', end, end + 1);
  return !/[A-Za-z0-9]/.test(surrounding);
}

/**
 * All JWTs and all keys of one kind have the same start, so a JWT is identified by its signature and a PEM key by its
 * lines.
 */
function revealingParts(secret: string): string[] {
  if (secret.startsWith('-----BEGIN')) return secret.split('\n').filter((line) => /^[A-Za-z0-9+/=]{16,}$/.test(line));
  if (/^eyJ[\w-]+\.[\w.-]+$/.test(secret)) return [secret.slice(secret.lastIndexOf('.') + 1)];
  return [secret];
}

function forms(secret: string): [kind: string, form: string][] {
  const encoded = encodeURIComponent(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    ['as it is', Buffer.from(secret).toString('latin1')],
    ['URL-encoded', encoded],
    ['URL-encoded', encoded.replaceAll(/%../g, (byte) => byte.toLowerCase())],
    ['URL-encoded', new URLSearchParams([[secret, '']]).toString().slice(0, -1)],
    ['as in JSON', Buffer.from(json).toString('latin1')],
    ['as in JSON', Buffer.from(json.replaceAll('/', '\\/')).toString('latin1')],
    ...[0, 1, 2].flatMap((offset): [string, string][] => {
      const base64 = base64Within(secret, offset);
      return [
        ['base64', base64],
        ['base64', base64.replaceAll('+', '-').replaceAll('/', '_')],
      ];
    }),
  ];
}

/** The characters of a base64 text that depend on `secret` alone, if it follows after `offset` bytes (modulo 3). */
function base64Within(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const base64 = bytes.toString('base64').replaceAll('=', '');
  const decided = bytes.length % 3 === 0 ? base64.length : base64.length - 1;
  return base64.slice(offset === 0 ? 0 : offset + 1, decided);
}

/** The secrets that rememberSecrets has written to a file; none if there is no file. */
export function readRememberedSecrets(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => String(JSON.parse(line)));
}

/** All files below a folder, by their paths in it. */
export function listFiles(folder: string): string[] {
  return globSync('**', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Where the logs of a folder contain a secret, as `file:line: kind`, never with the secret itself. */
export function findLeaks(folder: string, secrets: readonly string[]): string[] {
  const search = createSecretSearch(secrets);
  return listFiles(folder).flatMap((file) =>
    search(readFileSync(join(folder, file))).map(({ line, kind }) => `${file}:${line}: a secret, ${kind}`),
  );
}
