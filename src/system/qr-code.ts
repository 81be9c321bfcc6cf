import { encode, type QrCodeGenerateOptions, type QrCodeGenerateResult } from 'uqr';

/** Bytes that the largest QR code has room for, by its error correction level (ISO/IEC 18004, table 7). */
const CAPACITY = { L: 2953, M: 2331 };

/**
 * Makes a QR code.
 * @returns its modules, true for dark; null if the text is too long for any: a portal's link may be
 */
export function encodeQr(
  text: string,
  options: QrCodeGenerateOptions & { readonly ecc: keyof typeof CAPACITY },
): Pick<QrCodeGenerateResult, 'data' | 'size'> | null {
  return Buffer.byteLength(text) > CAPACITY[options.ecc] ? null : encode(text, options);
}
