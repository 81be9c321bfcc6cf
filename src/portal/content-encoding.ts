import {
  brotliDecompressSync,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  constants as zlib,
  zstdDecompressSync,
} from 'node:zlib';

/** Decoders by coding (RFC 9110, 8.4.1). `deflate` is sent with the header of zlib, and without. */
const DECODERS = new Map<string, readonly ((encoded: Buffer, limits: Limits) => Buffer)[]>([
  ['gzip', [gunzipSync]],
  ['x-gzip', [gunzipSync]],
  ['deflate', [inflateSync, inflateRaw]],
  ['br', [(encoded, { maxOutputLength }) => brotliDecompressSync(encoded, { maxOutputLength })]],
  ['zstd', [(encoded, { maxOutputLength }) => zstdDecompressSync(encoded, { maxOutputLength })]],
]);
/** Nobody encodes a response more often. */
const MAX_CODINGS = 3;

interface Limits {
  readonly maxOutputLength: number;
  /** A response without the checksum at its end is used. */
  readonly finishFlush: number;
}

/** What is not compressed may look like it: then it ends early. @throws Error if it is something else */
function inflateRaw(encoded: Buffer, limits: Limits): Buffer {
  const { buffer, engine } = inflateRawSync(encoded, { ...limits, info: true }) as unknown as InflatedRaw;
  if (engine.bytesWritten !== encoded.length) throw new Error('something follows the end');
  return buffer;
}

/** With `info`; `bytesWritten` is how many bytes were read. */
interface InflatedRaw {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/**
 * Decodes a response that was compressed although nobody asked. What it can't decode it leaves: a proxy may have decoded
 * it, and kept the header.
 * @param header `Content-Encoding`
 * @param maxBytes of the decoded response
 * @throws RangeError if it is larger
 */
export function decodeContent(encoded: Buffer, header: string, maxBytes: number): Buffer {
  const codings = header.split(',').map((coding) => coding.trim().toLowerCase());
  const applied = codings.filter((coding) => coding !== '' && coding !== 'identity');
  if (applied.length > MAX_CODINGS) return encoded;
  const limits = { maxOutputLength: maxBytes, finishFlush: zlib.Z_SYNC_FLUSH };
  return applied.reduceRight((bytes, coding) => decodeOnce(bytes, coding, limits), encoded);
}

function decodeOnce(encoded: Buffer, coding: string, limits: Limits): Buffer {
  for (const decode of DECODERS.get(coding) ?? []) {
    try {
      return decode(encoded, limits);
    } catch (error) {
      if (error instanceof RangeError) throw error;
    }
  }
  return encoded;
}

/**
 * Parses a `Retry-After` header (RFC 9110, 10.2.3): seconds, or a date. A date is compared with the sender's own
 * `Date`, because the hub's clock may be wrong.
 * @returns milliseconds; null if the header is absent or invalid
 */
export function parseRetryAfter(header: string, portalTime: number | null): number | null {
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = parseHttpDate(text);
  if (date === null || portalTime === null) return null;
  return Math.max(0, date - portalTime);
}

/** The asctime form of a date, which has no time zone. */
const ASCTIME_PATTERN = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * Parses the three forms of a date in a header (RFC 9110, 5.6.7).
 * @returns ms since 1970; null for anything else, such as "-5", which `Date.parse` accepts
 */
export function parseHttpDate(text: string): number | null {
  const date = Date.parse(text.endsWith(' GMT') ? text : ASCTIME_PATTERN.test(text) ? `${text} GMT` : '');
  return Number.isNaN(date) ? null : date;
}
