import { encode, type QrCodeGenerateOptions, type QrCodeGenerateResult } from 'uqr';

/** Bytes in the largest QR code, by error correction level (ISO/IEC 18004, table 7). */
const CAPACITY = { L: 2953, M: 2331 };

/** A QR code: its modules by row, true for dark, and the number of modules of a side, including the quiet zone. */
type QrCode = Pick<QrCodeGenerateResult, 'data' | 'size'>;

/**
 * Makes a QR code.
 * @returns null if the text is too long for any QR code, as a portal's link may be
 */
export function encodeQr(
  text: string,
  options: QrCodeGenerateOptions & { readonly ecc: keyof typeof CAPACITY },
): QrCode | null {
  return Buffer.byteLength(text) > CAPACITY[options.ecc] ? null : encode(text, options);
}

/** The dark modules as the `d` of one SVG path. A module is one unit wide, and each run of a row is a rectangle. */
export function qrSvgPath({ data }: QrCode): string {
  return data
    .flatMap((row, y) => {
      const modules = row.map((dark) => (dark ? '#' : ' ')).join('');
      return [...modules.matchAll(/#+/g)].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`);
    })
    .join('');
}
