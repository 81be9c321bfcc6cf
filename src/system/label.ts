import { html } from 'ghtml';
import { encodeQr, qrSvgPath } from './qr-code.ts';

/** The content of a label. */
export interface LabelContent {
  /** What the appliance is called. */
  readonly title: string;
  readonly hubName: string;
  /** What the label is for, in a few words. */
  readonly caption: string;
  /** The link in the QR code, also printed beside it. It is an address of the hub, so it fits into a QR code. */
  readonly link: string;
  /** A second link, in small print. */
  readonly otherLink: string | null;
}

/** All lengths are in tenths of a millimetre. */
const WIDTH = 600;
const HEIGHT = 400;
const MARGIN = 20;
/** The side of the QR code with its quiet zone. It is in the lower left corner, with the links beside it. */
const QR_SIDE = 304;
/** The width of a monospaced letter, and the distance between two lines, relative to the font size. */
const CHARACTER_WIDTH = 0.6;
const LINE_HEIGHT = 1.2;

/** A label for the door of a cabinet or for the hub, as an SVG document: black on white, 60 by 40 mm. */
export function labelSvg({ title, hubName, caption, link, otherLink }: LabelContent): string {
  const fullWidth = WIDTH - 2 * MARGIN;
  const nameSize = [52, 42, 34].find((size) => maxCharacters(fullWidth, size) >= title.length) ?? 25;
  const names = wrapText(title, nameSize, fullWidth).slice(0, 2);
  const column = { x: QR_SIDE, width: WIDTH - MARGIN - QR_SIDE };
  const captions = textLines(wrapText(caption, 22, column.width), 22, column.x, HEIGHT - QR_SIDE + 40);
  const links = textLines(wrapText(link, 20, column.width), 20, column.x, captions.end + 12);
  const otherLinks = otherLink === null ? [] : wrapText(otherLink, 16, column.width);
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="40mm" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="ui-monospace, monospace" fill="#000">
<path fill="#fff" d="M0 0h${WIDTH}v${HEIGHT}H0z"/>
<g font-weight="bold">!${textLines(names, nameSize, MARGIN, names.length > 1 ? 40 : 62).svg}</g>
!${textLines([truncate(hubName, 22, fullWidth)], 22, MARGIN, 94).svg}
!${qrCode(link)}
!${captions.svg}
!${links.svg}
!${textLines(otherLinks, 16, column.x, links.end + 8).svg}
</svg>
`;
}

function qrCode(link: string): string {
  const code = encodeQr(link, { ecc: 'M', border: 4 });
  if (code === null) return '';
  const module = QR_SIDE / code.size;
  return html`<path transform="translate(0 ${HEIGHT - QR_SIDE}) scale(${module})" shape-rendering="crispEdges" d="${qrSvgPath(code)}"/>`;
}

/**
 * Lines of text as SVG. `textLength` gives each line its computed length in any font.
 * @param y of the first line's baseline
 * @returns `end`: the baseline for a following line
 */
function textLines(lines: readonly string[], size: number, x: number, y: number): { svg: string; end: number } {
  const elements = lines.map((line, index) => {
    // XML has no control characters, not even escaped ones.
    const text = line.replaceAll(/\p{Cc}/gu, ' ');
    const length = Math.round(characters(text).length * size * CHARACTER_WIDTH);
    return html`<text x="${x}" y="${Math.round(y + index * size * LINE_HEIGHT)}" font-size="${size}" textLength="${length}" lengthAdjust="spacingAndGlyphs">${text}</text>`;
  });
  return { svg: elements.join('\n'), end: Math.round(y + lines.length * size * LINE_HEIGHT) };
}

function characters(text: string): string[] {
  return [...text];
}

function maxCharacters(width: number, size: number): number {
  return Math.floor(width / (size * CHARACTER_WIDTH));
}

function truncate(text: string, size: number, width: number): string {
  const max = maxCharacters(width, size);
  const letters = characters(text);
  return letters.length <= max ? text : `${letters.slice(0, max - 1).join('')}…`;
}

/** Wraps a text between words, and inside words that are too long for a line. */
function wrapText(text: string, size: number, width: number): string[] {
  const max = maxCharacters(width, size);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((part) => part.match(new RegExp(`.{1,${max}}`, 'gu')) ?? [])) {
    if (line !== '' && line.length + 1 + word.length > max) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}
