import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ZBARIMG = '/usr/bin/zbarimg';

/** Why no QR code can be read here; null if one can. */
export function qrScannerSkipReason(): string | null {
  return existsSync(ZBARIMG) ? null : `${ZBARIMG} is missing`;
}

/** The content of a QR code. @param picture as PNG @throws if it contains no code */
export function scanQrCode(picture: Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'lk-scan-'));
  try {
    const file = join(folder, 'picture.png');
    writeFileSync(file, picture);
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    return execFileSync(ZBARIMG, ['--raw', '-q', file], { encoding: 'utf8', stdio }).trim();
  } finally {
    rmSync(folder, { recursive: true });
  }
}
