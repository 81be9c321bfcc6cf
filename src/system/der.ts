import { isIPv4, isIPv6 } from 'node:net';

/** DER (X.690), as far as certificates are written in it: every function gives a whole element. */
export function sequence(...elements: readonly Uint8Array[]): Buffer {
  return element(0x30, ...elements);
}

export function set(...elements: readonly Uint8Array[]): Buffer {
  return element(0x31, ...elements);
}

/** @param dotted such as `2.5.29.17` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([40 * first + second, ...rest].flatMap(base128)));
}

/** @param bytes big-endian, the first one below 0x80, and not 0 unless it is the only one */
export function integer(bytes: Uint8Array): Buffer {
  return element(0x02, bytes);
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]));
}

export function octetString(bytes: Uint8Array): Buffer {
  return element(0x04, bytes);
}

/** @param unused bits at the end of the last byte */
export function bitString(bytes: Uint8Array, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), bytes);
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text));
}

/** A moment to the second, as RFC 5280 section 4.1.2.5 has it: GeneralizedTime from 2050 on, and UTCTime before. */
export function time(moment: Date): Buffer {
  const digits = `${moment.toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`;
  return moment.getUTCFullYear() >= 2050
    ? element(0x18, Buffer.from(digits))
    : element(0x17, Buffer.from(digits.slice(2)));
}

/** An element in a context-specific one. */
export function explicit(number: number, content: Uint8Array): Buffer {
  return element(0xa0 | number, content);
}

/** A context-specific element in place of a primitive one. @param content without its header */
export function implicit(number: number, content: Uint8Array): Buffer {
  return element(0x80 | number, content);
}

/** The elements that an element consists of, whole. @throws Error where it ends too early */
export function elementsIn(der: Uint8Array): Buffer[] {
  const whole = Buffer.from(der.buffer, der.byteOffset, der.byteLength);
  const elements: Buffer[] = [];
  for (let at = extentOf(whole, 0).content; at < whole.length; ) {
    const { end } = extentOf(whole, at);
    elements.push(whole.subarray(at, end));
    at = end;
  }
  return elements;
}

/** An IP address in network byte order. @param address without a zone @throws RangeError where it is none */
export function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  if (!isIPv6(address) || address.includes('%')) throw new RangeError(`${address} is no IP address`);
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros: string[] = Array(8 - before.length - after.length).fill('0');
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let left = value >>> 7; left > 0; left >>>= 7) bytes.unshift(0x80 | (left & 0x7f));
  return bytes;
}

/** Where an element's content begins, and where it ends. */
function extentOf(der: Buffer, at: number): { readonly content: number; readonly end: number } {
  const first = der[at + 1] ?? 0;
  const bytes = first < 0x80 ? 0 : first & 0x7f;
  const content = at + 2 + bytes;
  const end = content + (bytes === 0 ? first : der.readUIntBE(at + 2, bytes));
  if (end > der.length) throw new RangeError('an element ends too early');
  return { content, end };
}
