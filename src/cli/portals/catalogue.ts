import { allClouds, PROVENANCE } from '../../clouds/catalogue.ts';
import type { Cloud } from '../../clouds/cloud.ts';
import { wrapText } from '../terminal/table.ts';

/** What people should know about a preset. */
type Description = Pick<
  Cloud,
  'name' | 'title' | 'summary' | 'register' | 'client_secret' | 'redirect' | 'known' | 'unverified' | 'sources'
>;

/** The presets in the order of their names, as `--json` prints them; `provenance` says where all of them come from. */
export interface Catalogue {
  readonly provenance: string;
  readonly presets: readonly Description[];
}

/** The catalogue of presets. */
export function presetCatalogue(): Catalogue {
  return {
    provenance: PROVENANCE,
    presets: allClouds().map(
      ({ name, title, summary, register, client_secret, redirect, known, unverified, sources }) => ({
        name,
        title,
        summary,
        register,
        client_secret,
        redirect,
        known,
        unverified,
        sources,
      }),
    ),
  };
}

/** How one registers the redirect URI, by the class that the portal is known to accept. */
const REDIRECTS: Readonly<Record<NonNullable<Description['redirect']>, string>> = {
  lan: 'the address of the hub, which "latchkey portals" shows',
  localhost: 'an address of localhost: paste the address on which the browser ends',
  https: 'an https address: that of the relay page, or one on which the browser ends and that you paste',
  fixed: 'that of an app: paste the address on which the browser ends',
};

/** Stands in the steps of the presets for the redirect URI of a configured portal. */
const REDIRECT_URI = 'the address that "latchkey portals" shows';

/** The catalogue as text. @param columns width of the terminal; longer lines are wrapped */
export function catalogueText({ provenance, presets }: Catalogue, columns: number): string {
  const lines = [
    `All ${presets.length} presets are ${provenance}.`,
    'Use one with preset = "NAME" in a section [portals.…] of the configuration.',
    ...presets.flatMap(describePreset),
  ];
  return lines.flatMap((line) => wrapLine(line, columns)).join('\n');
}

function describePreset(preset: Description): string[] {
  const { name, title, summary, register, client_secret: secret, redirect, known, unverified, sources } = preset;
  return [
    '',
    `${name}: ${title}`,
    `  ${summary}`,
    ...(register === null
      ? ['  Register: nothing, the preset has a client for everyone']
      : [
          `  Register at ${register.url}`,
          ...register.steps.map(
            (step, index) => `    ${index + 1}. ${step.replaceAll('{redirect_uri}', REDIRECT_URI)}`,
          ),
        ]),
    `  Client secret: ${secret}`,
    `  Redirect URI: ${redirect === null ? 'none, the login is by device code' : REDIRECTS[redirect]}`,
    ...list('Known', known),
    ...list('Not verified', unverified),
    ...list('Sources', sources),
  ];
}

function list(heading: string, items: readonly string[]): string[] {
  return items.length === 0 ? [] : [`  ${heading}:`, ...items.map((item) => `    - ${item}`)];
}

/** Wraps a line; the parts are indented as far as its text. */
function wrapLine(line: string, columns: number): string[] {
  const [indent = ''] = /^ *(- |\d+\. )?/.exec(line) ?? [];
  const [first = '', ...more] = wrapText(line.slice(indent.length), Math.max(columns - indent.length, 20));
  return [`${indent}${first}`, ...more.map((part) => `${' '.repeat(indent.length)}${part}`)];
}
