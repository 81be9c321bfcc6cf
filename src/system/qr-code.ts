import { encode, type QrCodeGenerateOptions, type QrCodeGenerateResult } from 'uqr';

/** Bytes that the largest QR code has room for, by its error correction level (ISO/IEC 18004, table 7). */
const CAPACITY = { L: 2953, M: 2331 };

/** A QR code: its modules by row, true for dark, and how many a side has, the quiet zone among them. */
export type QrCode = Pick<QrCodeGenerateResult, 'data' | 'size'>;

/**
 * Makes a QR code.
 * @returns null if the text is too long for any: a portal's link may be
 */
export function encodeQr(
  text: string,
  options: QrCodeGenerateOptions & { readonly ecc: keyof typeof CAPACITY },
): QrCode | null {
  return Buffer.byteLength(text) > CAPACITY[options.ecc] ? null : encode(text, options);
}

/** The dark modules as the `d` of one SVG path, in which a module is one unit wide: each run of a row is a rectangle. */
export function qrSvgPath({ data }: QrCode): string {
  return data
    .flatMap((row, y) => {
      const modules = row.map((dark) => (dark ? '#' : ' ')).join('');
      return [...modules.matchAll(/#+/g)].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`);
    })
    .join('');
}
