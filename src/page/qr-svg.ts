import { html } from 'ghtml';
import { encodeQr, qrPath } from '../system/qr-code.ts';

/**
 * A QR code as a picture, black on white in every colour scheme, with the quiet zone of ISO/IEC 18004.
 * @param label what it holds, for who can't see it
 * @returns HTML; null if the text is too long for a QR code
 */
export function qrSvg(text: string, label: string): string | null {
  const code = encodeQr(text, { ecc: 'L', border: 4 });
  if (code === null) return null;
  const { size } = code;
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${qrPath(code)}"/></svg>`;
}
