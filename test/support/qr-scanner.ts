import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ZBARIMG = '/usr/bin/zbarimg';

/** Says why no QR code can be read here, or null where one can. */
export function qrScannerSkipReason(): string | null {
  return existsSync(ZBARIMG) ? null : `${ZBARIMG} is missing`;
}

/** What a scanner reads in a picture. @param picture as PNG @throws where there is no code in it */
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
