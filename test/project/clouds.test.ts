import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allClouds, PROVENANCE } from '../../src/clouds/catalogue.ts';
import type { Cloud } from '../../src/clouds/cloud.ts';
import { root } from './checkout.ts';

const PAGE = join(root, 'docs/clouds.md');
const MARKED = /(<!-- presets: [^\n]*-->\n).*(<!-- end of presets -->\n)/s;

test('docs/clouds.md describes every preset as its data file does (./scripts/test --update project/clouds writes it)', async () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toMatch(MARKED);
  const described = `${[table(), ...allClouds().map(section)].join('\n\n')}\n`;
  await expect(
    page.replace(MARKED, (_, begin: string, end: string) => `${begin}${described}${end}`),
  ).toMatchFileSnapshot(PAGE);
});

test('docs/clouds.md says that the presets were not tried', () => {
  expect(readFileSync(PAGE, 'utf8')).toContain(PROVENANCE);
});

const REDIRECTS = {
  lan: "[the hub's own](#the-redirect-address)",
  localhost: '[`http://localhost`](#the-redirect-address)',
  https: '[a public `https` address](#the-redirect-address)',
  fixed: "[that of the vendor's app](#the-redirect-address)",
};
const SECRETS = { required: 'ID and secret', optional: 'ID; a secret only if the cloud gave one', none: 'ID' };
const UNITS: Readonly<Record<string, string>> = { d: 'days', h: 'hours', m: 'minutes', s: 'seconds' };

function table(): string {
  const rows = allClouds().map((preset) => [
    `[${preset.title}](#${anchorOf(preset.title)})`,
    `\`${preset.name}\``,
    preset.summary,
    loginOf(preset),
    preset.register === null ? 'nothing' : `an app, at ${hostOf(preset.register.url)}`,
    preset.register === null ? 'nothing' : SECRETS[preset.client_secret],
    preset.redirect === null ? 'none' : REDIRECTS[preset.redirect],
    preset.unverified.length === 0 ? '–' : `[${preset.unverified.length}](#${anchorOf(preset.title)})`,
  ]);
  const head = ['cloud', 'preset', 'appliances', 'login', 'register', 'copy', 'redirect address', 'not verified'];
  const [titles, ...lines] = [head, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [titles, `|${'---|'.repeat(head.length)}`, ...lines].join('\n');
}

function section(preset: Cloud): string {
  const { title, register, settings, scope, unverified } = preset;
  const steps = register === null ? [] : [`Open <${register.url}>.`, ...register.steps];
  const facts = [
    ...(scope === undefined ? [] : [`Permissions, if you name none: \`${scope}\`.`]),
    ...(settings.idle_lifetime === undefined
      ? []
      : [`The login ends if the hub does not use it for ${inWords(settings.idle_lifetime)}.`]),
    ...(settings.login_lifetime === undefined
      ? []
      : [`A login lasts at most ${inWords(settings.login_lifetime)}. Then log in again.`]),
    ...unverified.map((text) => `Not verified: ${text}`),
  ].map((text) => `- ${text}`);
  return [`### ${title}`, numbered(steps), `\`\`\`toml\n${configurationOf(preset)}\n\`\`\``, facts.join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
}

function loginOf({ settings, redirect }: Cloud): string {
  if (settings.device_authorization_endpoint === undefined) return 'by a link';
  return redirect === null ? 'by a code' : 'by a code; with `login = "redirect"` by a link';
}

function configurationOf({ name, register, client_secret: secret, variables = {}, settings, redirect }: Cloud): string {
  const values = Object.entries(variables).map(([key, { default: usual }]) => `${key} = "${usual ?? '…'}"`);
  const addresses = { lan: null, fixed: null, localhost: 'http://localhost:8480/callback', https: 'https://…' };
  const redirectUri = redirect === null || settings.login === 'device' ? null : addresses[redirect];
  return [
    `[portals.${name}]`,
    `preset = "${name}"`,
    ...(register === null ? [] : ['client_id = "…"']),
    ...(secret === 'required' ? [`client_secret_file = "${name}.secret"`] : []),
    ...(values.length === 0 ? [] : [`variables = { ${values.join(', ')} }`]),
    ...(redirectUri === null ? [] : [`redirect_uri = "${redirectUri}"`]),
  ].join('\n');
}

function numbered(steps: readonly string[]): string {
  return steps
    .map((step, index) => `${index + 1}. ${step.replaceAll('{redirect_uri}', 'the redirect address')}`)
    .join('\n');
}

function inWords(duration: string): string {
  return `${duration.slice(0, -1)} ${UNITS[duration.slice(-1)]}`;
}

function hostOf(url: string): string {
  return `[${new URL(url).host}](${url})`;
}

/** The anchor that GitHub generates for a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}
