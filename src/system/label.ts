import { html } from 'ghtml';
import { encodeQr, qrSvgPath } from './qr-code.ts';

/** What a label shows. */
export interface LabelContent {
  /** The appliance's name. */
  readonly name: string;
  readonly hubName: string;
  /** What the label is for, in a few words. */
  readonly caption: string;
  /** What the QR code holds, and is written beside it: the hub's own address, which any QR code has room for. */
  readonly link: string;
  /** A second link, in small print. */
  readonly otherLink: string | null;
}

/** Tenths of a millimetre, as are all lengths here. */
const WIDTH = 600;
const HEIGHT = 400;
const MARGIN = 20;
/** The side of the QR code with its quiet zone: it stands in the lower left corner, and the links beside it. */
const QR_SIDE = 304;
/** The width of a letter of a monospaced font, and the distance of two lines, by the font's size. */
const CHARACTER_WIDTH = 0.6;
const LINE_HEIGHT = 1.2;

/** A label for the door of a cabinet, as an SVG document: black on white, 60 by 40 mm. */
export function labelSvg({ name, hubName, caption, link, otherLink }: LabelContent): string {
  const whole = WIDTH - 2 * MARGIN;
  const nameSize = [52, 42, 34].find((size) => maxCharacters(whole, size) >= name.length) ?? 25;
  const names = wrapText(name, nameSize, whole).slice(0, 2);
  const beside = { x: QR_SIDE, room: WIDTH - MARGIN - QR_SIDE };
  const captions = textLines(wrapText(caption, 22, beside.room), 22, beside.x, HEIGHT - QR_SIDE + 40);
  const links = textLines(wrapText(link, 20, beside.room), 20, beside.x, captions.end + 12);
  const others = otherLink === null ? [] : wrapText(otherLink, 16, beside.room);
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="40mm" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="ui-monospace, monospace" fill="#000">
<path fill="#fff" d="M0 0h${WIDTH}v${HEIGHT}H0z"/>
<g font-weight="bold">!${textLines(names, nameSize, MARGIN, names.length > 1 ? 40 : 62).svg}</g>
!${textLines([truncate(hubName, 22, whole)], 22, MARGIN, 94).svg}
!${qrCode(link)}
!${captions.svg}
!${links.svg}
!${textLines(others, 16, beside.x, links.end + 8).svg}
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
 * Lines of text as SVG. Each is made as long as it was reckoned, whatever the font.
 * @param y of the first one's base line
 * @returns with the base line of what may follow
 */
function textLines(all: readonly string[], size: number, x: number, y: number): { svg: string; end: number } {
  const each = all.map((line, index) => {
    // XML has no control characters, not even escaped ones.
    const text = line.replaceAll(/\p{Cc}/gu, ' ');
    const length = Math.round(characters(text).length * size * CHARACTER_WIDTH);
    return html`<text x="${x}" y="${Math.round(y + index * size * LINE_HEIGHT)}" font-size="${size}" textLength="${length}" lengthAdjust="spacingAndGlyphs">${text}</text>`;
  });
  return { svg: each.join('\n'), end: Math.round(y + all.length * size * LINE_HEIGHT) };
}

function characters(text: string): string[] {
  return [...text];
}

function maxCharacters(room: number, size: number): number {
  return Math.floor(room / (size * CHARACTER_WIDTH));
}

function truncate(text: string, size: number, room: number): string {
  const most = maxCharacters(room, size);
  const letters = characters(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join('')}…`;
}

/** Breaks a text between words, and where one is too long for a line, in the middle. */
function wrapText(text: string, size: number, room: number): string[] {
  const most = maxCharacters(room, size);
  const found: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((each) => each.match(new RegExp(`.{1,${most}}`, 'gu')) ?? [])) {
    if (line !== '' && line.length + 1 + word.length > most) {
      found.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? found : [...found, line];
}
