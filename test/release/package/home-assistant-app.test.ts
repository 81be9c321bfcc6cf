// The repository of the Home Assistant app, as makers publish it.
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allClouds } from '../../../src/clouds/catalogue.ts';
import { loadConfiguration } from '../../../src/configuration/configuration.ts';
import { readAppOptions } from '../../../src/configuration/home-assistant-options.ts';
import { root } from '../../project/checkout.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { APPARMOR_PARSER } from './app-armor-profile.ts';
import { buildAppRepository, readAppConfig, readYaml } from './home-assistant-app.ts';

const run = promisify(execFile);
const IMAGE = 'registry.example:5000/maker/latchkey';
const schema: object = JSON.parse(readFileSync(join(import.meta.dirname, 'home-assistant-app.schema.json'), 'utf8'));

let folder: ReturnType<typeof stateFolder>;
let repository: string;

beforeAll(async () => {
  folder = stateFolder();
  repository = await buildAppRepository(folder.path, '--version', '1.2.3', '--image', IMAGE);
});

afterAll(() => folder?.[Symbol.dispose]());

const inApp = (file: string) => join(repository, 'latchkey', file);
const text = (file: string) => readFileSync(inApp(file), 'utf8');

/** What the Supervisor would reject. */
function errorsIn(document: unknown, definition: string): string[] {
  const ajv = new Ajv({ strict: true, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(schema, 'app');
  const validate = ajv.compile({ $ref: `app#/definitions/${definition}` });
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** All files with their modes, times and contents. */
function contentsOf(directory: string): [file: string, mode: number, time: number, content: string][] {
  return globSync('**', { cwd: directory, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort()
    .map((file) => {
      const { mode, mtimeMs } = statSync(file);
      return [file.slice(directory.length), mode & 0o777, mtimeMs, readFileSync(file, 'base64')];
    });
}

describe('the repository of the app', () => {
  it('the repository contains the files that Home Assistant looks for, readable by everybody', () => {
    const found = contentsOf(repository);
    const app = ['CHANGELOG.md', 'DOCS.md', 'README.md', 'apparmor.txt', 'config.yaml', 'icon.png'];
    const files = [...app, 'logo.png', 'translations/de.yaml', 'translations/en.yaml'];
    const modules = ['__init__', 'config_flow', 'hub', 'oauth', 'sensor'].map((name) => `${name}.py`);
    const integration = [...modules.slice(0, 3), 'manifest.json', ...modules.slice(3)];
    const translations = ['de', 'en'].map((language) => `translations/${language}.json`);
    expect(found.map(([file]) => file)).toEqual([
      '/README.md',
      ...[...integration, ...translations].map((file) => `/custom_components/latchkey/${file}`),
      '/hacs.json',
      ...files.map((file) => `/latchkey/${file}`),
      '/repository.yaml',
    ]);
    expect(new Set(found.map(([, mode]) => mode))).toEqual(new Set([0o644]));
  });

  it('two builds are identical, and the second one keeps files of the maker', async () => {
    using other = stateFolder();
    mkdirSync(join(other.path, 'home-assistant/.git'), { recursive: true });
    mkdirSync(join(other.path, 'home-assistant/latchkey'));
    writeFileSync(join(other.path, 'home-assistant/latchkey/of-an-older-version.txt'), '');
    writeFileSync(join(other.path, 'home-assistant/.git/HEAD'), 'ref: refs/heads/main\n');
    const again = await buildAppRepository(other.path, '--version', '1.2.3', '--image', IMAGE);
    expect(contentsOf(again)).toEqual(contentsOf(repository));
    expect(existsSync(join(again, '.git/HEAD'))).toBe(true);
  });

  it('config.yaml has the version and the image of the command line, and all YAML files are valid for the Supervisor', () => {
    expect(errorsIn(readYaml(inApp('config.yaml')), 'config')).toEqual([]);
    expect(errorsIn(readYaml(join(repository, 'repository.yaml')), 'repository')).toEqual([]);
    for (const language of ['de', 'en']) {
      expect(errorsIn(readYaml(inApp(`translations/${language}.yaml`)), 'translations')).toEqual([]);
    }
    const own = readAppConfig(repository);
    expect(own).toMatchObject({ version: '1.2.3', image: IMAGE });
    const config = { ...own, watchdog: 'http://127.0.0.1/', icon: 'x', map: [{ type: 'x' }] };
    expect(errorsIn(config, 'config').length).toBeGreaterThan(3);
  });

  it('repository.yaml names the maker if the build is told', async () => {
    using other = stateFolder();
    const env = {
      ...process.env,
      LATCHKEY_MAINTAINER: 'A <hubs@maker.example>',
      LATCHKEY_HOMEPAGE: 'https://maker.example',
    };
    const { stdout } = await run(join(root, 'scripts/build-home-assistant'), ['--output', other.path], { env });
    const file = join(stdout.trim(), 'repository.yaml');
    expect(readYaml(file)).toEqual({
      name: 'Latchkey',
      url: 'https://maker.example',
      maintainer: 'A <hubs@maker.example>',
    });
    expect(errorsIn(readYaml(file), 'repository')).toEqual([]);
  });

  it('without --image the image has a name that nobody can own, and a line on standard error says so', async () => {
    using other = stateFolder();
    const built = await run(join(root, 'scripts/build-home-assistant'), ['--output', other.path]);
    expect(built.stderr).toMatch(/^latchkey: the image has no name: .* --image\n$/);
    const config = readAppConfig(built.stdout.trim());
    expect(config.image).toMatch(/^image-name-not-set\.invalid\//);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(config.version).toBe(version);
    expect(errorsIn(readYaml(join(other.path, 'home-assistant/latchkey/config.yaml')), 'config')).toEqual([]);
  });
});

describe('the options of the app', () => {
  const portalOptions = () => Object.keys(readAppConfig(repository).schema.portals[0]);
  const allowed = (problem = '') => /the options are: ([^;]*)/.exec(problem)?.[1]?.split(', ').sort();

  it('the hub reads every option of the app, and no other', () => {
    const config = readAppConfig(repository);
    const portals = [{ name: 'home', nonsense: 'x' }];
    const { problems } = readAppOptions({ nonsense: 'x', portals });
    expect(Object.keys(config.schema).sort()).toEqual(allowed(problems.get('nonsense')));
    expect(portalOptions().sort()).toEqual(allowed(problems.get('portals.home.nonsense')));
  });

  it('the form offers every known cloud, with an option for each of its variables', () => {
    const { preset = '' } = readAppConfig(repository).schema.portals[0];
    const offered = /^list\((.*)\)\?$/.exec(preset)?.[1]?.split('|');
    expect(offered).toEqual(allClouds().map(({ name }) => name));
    const variables = allClouds().flatMap(({ variables: own = {} }) => Object.keys(own));
    expect(portalOptions()).toEqual(expect.arrayContaining(variables));
  });

  it('each option has a name in English and German, and the documentation describes it', () => {
    const config = readAppConfig(repository);
    for (const language of ['en', 'de']) {
      const { configuration } = readYaml(inApp(`translations/${language}.yaml`)) as {
        configuration: Record<string, { fields?: object }>;
      };
      expect(Object.keys(configuration).sort()).toEqual(Object.keys(config.schema).sort());
      expect(Object.keys(configuration['portals']?.fields ?? {})).toEqual(portalOptions());
    }
    const documented = text('DOCS.md');
    for (const option of [...Object.keys(config.schema), ...portalOptions()]) {
      expect(documented).toContain(`\`${option}\``);
    }
  });

  it('each text of the integration is there in English and German with the same placeholders, and the title of a menu has none', () => {
    const [en, de] = ['en', 'de'].map((language) => {
      const file = join(repository, `custom_components/latchkey/translations/${language}.json`);
      return placeholdersOf(JSON.parse(readFileSync(file, 'utf8')));
    });
    expect(de).toEqual(en);
    // Home Assistant fills in none there.
    expect(en).toMatchObject({ config: { step: { join_menu: { title: [] } } } });
  });

  it('the defaults are a valid configuration, with the places that the app gives', async () => {
    const { options, environment, ingress_port, watchdog } = readAppConfig(repository);
    const file = join(folder.path, 'options.json');
    writeFileSync(file, JSON.stringify(options));
    const env = { HOME: folder.path, ...environment, LATCHKEY_CONFIG: file };
    const configuration = await loadConfiguration(undefined, env);
    expect(configuration).toMatchObject({
      name: 'Latchkey',
      stateDirectory: '/data/latchkey',
      controlSocket: '/data/latchkey/control.sock',
      metrics: { host: '172.30.32.1', port: 9480 },
      ingress: { host: '172.30.32.1', port: ingress_port, from: '172.30.32.2' },
    });
    expect(environment['LATCHKEY_CONFIG']).toBe('/config/latchkey.toml:/data/options.json');
    expect(watchdog).toContain(`[PORT:${configuration.metrics?.port}]/healthz`);
  });
});

describe('the AppArmor profile of the app', () => {
  it('the profile has the one line that the Supervisor renames, and gives nothing that concerns other programs', () => {
    expect(text('apparmor.txt').match(/^profile .*$/gm)).toEqual([
      'profile latchkey flags=(attach_disconnected,mediate_deleted) {',
    ]);
    const rules = text('apparmor.txt').replaceAll(/^ *#(?!include).*$/gm, '');
    expect(rules).not.toMatch(/\b(capability|mount|ptrace|dbus|pivot_root|change_profile|userns)\b/);
    expect(rules).not.toMatch(/\b[pPcCuU]x\b/);
    expect(rules).not.toMatch(/^ *(file|network|capability),/m);
  });

  it('the parser of AppArmor accepts the profile', async (ctx) => {
    if (!existsSync(APPARMOR_PARSER)) ctx.skip(`${APPARMOR_PARSER} is missing`);
    await run(APPARMOR_PARSER, ['-Q', '-K', inApp('apparmor.txt')]);
    const broken = join(folder.path, 'broken.txt');
    writeFileSync(broken, text('apparmor.txt').replace('/config/ r,', '/config/ rq,'));
    await expect(run(APPARMOR_PARSER, ['-Q', '-K', broken])).rejects.toThrow(/syntax error|AppArmor parser error/);
  });
});

/** The same object with the placeholders of each text in its place. */
function placeholdersOf(texts: unknown): unknown {
  if (typeof texts === 'string') return (texts.match(/\{\w+\}/g) ?? []).sort();
  return Object.fromEntries(Object.entries(Object(texts)).map(([key, text]) => [key, placeholdersOf(text)]));
}
