import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runCommand } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { reservePort } from '../../support/hub-process.ts';
import { GO_CACHE, SHARED_CACHE } from '../../support/program.ts';
import { missingPackages } from '../clients/programs.ts';
import { startIobroker } from './iobroker.ts';
import type { Kitchen, Recipe } from './recipe-home.ts';

/** The reason if one of these programs of Debian is missing. */
function without(...programs: string[]): string | null {
  const missing = programs.filter((program) => !existsSync(program));
  return missing.length === 0 ? null : `without ${missing.join(', ')}`;
}

/** `NAME=VALUE` as an environment. */
function environment(assignment: string | null): NodeJS.ProcessEnv {
  const [name, value] = assignment?.split('=') ?? [];
  return name === undefined ? {} : { [name]: value };
}

/** The folder of packages of npm, outside of the sources. */
function packagesFolder(...packages: string[]): string {
  return join(SHARED_CACHE, 'programs', packages.join('+').replaceAll('/', '-'));
}

/** Installs packages of npm, once. @returns why that was not possible */
async function withoutPackages(...packages: string[]): Promise<string | null> {
  const folder = packagesFolder(...packages);
  const mark = join(folder, 'installed');
  if (existsSync(mark)) return null;
  await mkdir(folder, { recursive: true });
  // Without it, npm would use the manifest of a folder above. ioBroker replaces one without a version.
  await writeFile(join(folder, 'package.json'), '{"private": true, "version": "1.0.0"}');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  const timeout = scaleDeadline(120_000);
  const { status, stderr } = await runCommand('npm', ['install', ...options, ...packages], { cwd: folder, timeout });
  if (status !== 0) return `npm could not install ${packages.join(' and ')}: ${stderr.trim().split('\n')[0]}`;
  await writeFile(mark, '');
  return null;
}

const TELEGRAF = join(packagesFolder('telegraf@v1.37.2'), 'telegraf');

/** Builds Telegraf with the plugins that its recipe needs, once. @returns why that was not possible */
async function withoutTelegraf(): Promise<string | null> {
  if (existsSync(TELEGRAF)) return null;
  const tags = 'custom,inputs.http,parsers.json,outputs.file';
  const args = ['install', '-tags', tags, 'github.com/influxdata/telegraf/cmd/telegraf@v1.37.2'];
  // Debian's Go may be older than Telegraf needs, so one that was installed as its makers say comes first.
  const PATH = `/usr/local/go/bin:${process.env['PATH']}`;
  const env = { ...process.env, PATH, GOBIN: dirname(TELEGRAF), GOCACHE: GO_CACHE };
  const { status, stderr } = await runCommand('go', args, { env, timeout: scaleDeadline(300_000) });
  if (status === 0) return null;
  return `go could not build Telegraf, which needs Go 1.25: ${stderr.trim().split('\n').at(-1) || 'there is no go'}`;
}

/** A whole evcc, built by hand; undefined: the library of its token source alone. It announces itself on the network. */
const EVCC = process.env['LATCHKEY_TEST_EVCC'];

const IOBROKER = ['iobroker.js-controller@7.1.1', 'iobroker.javascript@9.1.1'];
const HOMEBRIDGE = ['homebridge@1.11.4', 'homebridge-dummy@2.1.1'];

/** A server of the Model Context Protocol without tools. */
async function answerMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const { id, method } = JSON.parse(await text(request)) as { id?: number; method: string };
  if (id === undefined) return void response.writeHead(202).end();
  const serverInfo = { name: 'cloud', version: '1.0.0' };
  const begun = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
  const result = method === 'initialize' ? begun : { tools: [] };
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** The script of "curl and cron", with its credentials. @returns its path */
async function writeScript(kitchen: Kitchen): Promise<string> {
  const [script = ''] = kitchen.blocks('sh', 'curl and cron');
  const [netrc = ''] = kitchen.blocks('text', 'curl and cron');
  await kitchen.write('heating.netrc', netrc);
  return kitchen.write('heating', trusting(script, kitchen));
}

/** A script with the option of its recipe after the first `curl`. */
function trusting(script: string, { trust }: Kitchen): string {
  return trust === null ? script : script.replace(/^ {2}curl /m, `$&${trust} `);
}

/** The recipes of docs/programs.md, in its order. */
export const RECIPES: readonly Recipe[] = [
  {
    heading: 'curl and cron',
    trust: '--cacert /etc/latchkey-ca.pem',
    skipReason: () => without('/usr/bin/curl'),
    async start(kitchen) {
      await writeScript(kitchen);
      const [, crontab = ''] = kitchen.blocks('text');
      // As cron does, with its environment, only more often.
      const [, command = ''] = /^(?:\S+ ){5}root (.*)$/m.exec(crontab) ?? [];
      return kitchen.repeat('/bin/sh', ['-c', command], { PATH: '/usr/bin:/bin' });
    },
  },
  {
    heading: 'rclone',
    skipReason: () => without('/usr/bin/rclone'),
    async start(kitchen) {
      const [commands = ''] = kitchen.blocks('sh');
      const [configure = '', list = ''] = commands.split('\n');
      const { status, stderr } = await runCommand('/bin/sh', ['-c', configure], {
        env: { HOME: kitchen.folder, PATH: '/usr/bin:/bin' },
      });
      if (status !== 0) throw new Error(stderr);
      return kitchen.repeat('/bin/sh', ['-c', list]);
    },
    answer(_request, response) {
      const file =
        '<d:response><d:href>/files/</d:href><d:propstat><d:prop><d:resourcetype><d:collection/></d:resourcetype></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>';
      response.writeHead(207, { 'content-type': 'application/xml' });
      response.end(`<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">${file}</d:multistatus>`);
    },
  },
  {
    heading: 'Prometheus',
    trust: 'tls_config: {ca_file: /etc/latchkey-ca.pem}',
    skipReason: () => without('/usr/bin/prometheus'),
    async start(kitchen) {
      const [scrape = ''] = kitchen.blocks('yaml');
      const trust = kitchen.trust === null ? '' : `      ${kitchen.trust}\n`;
      await kitchen.write('heating.secret', kitchen.secret);
      const file = await kitchen.write(
        'prometheus.yml',
        `global: {scrape_interval: 1s, scrape_timeout: 1s}\n${scrape}${trust}`,
      );
      const storage = `--storage.tsdb.path=${join(kitchen.folder, 'data')}`;
      return kitchen.spawn('/usr/bin/prometheus', [
        `--config.file=${file}`,
        storage,
        '--web.listen-address=127.0.0.1:0',
      ]);
    },
    answer: (_request, response) => response.end('temperature 21.5\n'),
  },
  {
    heading: 'Telegraf',
    trust: 'SSL_CERT_FILE=/etc/latchkey-ca.pem',
    skipReason: withoutTelegraf,
    async start(kitchen) {
      const [input = ''] = kitchen.blocks('toml');
      const file = await kitchen.write('telegraf.conf', `[agent]\n  interval = "1s"\n[[outputs.file]]\n${input}`);
      return kitchen.spawn(TELEGRAF, ['--config', file], environment(kitchen.trust));
    },
  },
  {
    heading: 'evcc',
    trust: 'Environment=SSL_CERT_FILE=/etc/latchkey-ca.pem',
    skipReason: () =>
      EVCC !== undefined || missingPackages('golang.org/x/oauth2').length === 0
        ? null
        : 'without Go and golang.org/x/oauth2',
    async start(kitchen) {
      const [configuration = ''] = kitchen.blocks('yaml');
      const trust = environment(kitchen.trust?.replace('Environment=', '') ?? null);
      if (EVCC !== undefined) {
        const ports = `network: {port: ${await reservePort()}}\nocpp: {port: ${await reservePort()}}\n`;
        const file = await kitchen.write('evcc.yaml', `${ports}interval: 1s\n${configuration}`);
        return kitchen.spawn(EVCC, ['--config', file, '--database', join(kitchen.folder, 'evcc.db')], trust);
      }
      // evcc can't be had from the registries. Its token source is this library with these three values.
      const value = (key: string) => new RegExp(`^ +${key}: (.*)$`, 'm').exec(configuration)?.[1] ?? '';
      const program = join(kitchen.folder, 'token-source');
      const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
      const source = join(import.meta.dirname, 'token-source/main.go');
      const built = await runCommand('/usr/bin/go', ['build', '-o', program, source], { env });
      if (built.status !== 0) throw new Error(built.stderr);
      const args = ['uri', 'clientid', 'clientsecret', 'tokenurl'].map(value);
      return kitchen.spawn(program, args, trust);
    },
  },
  {
    heading: 'Node-RED',
    trust: 'NODE_EXTRA_CA_CERTS=/etc/latchkey-ca.pem',
    skipReason: () => withoutPackages('node-red@5.0.7'),
    async start(kitchen) {
      const [flow = ''] = kitchen.blocks('json');
      const nodes = JSON.parse(flow.replace('"repeat": "60"', '"repeat": "1"')) as { id: string; name?: string }[];
      const credentials = { user: kitchen.id, password: kitchen.secret };
      const hubs = nodes.filter(({ name }) => name === 'hub').map(({ id }) => [id, credentials] as const);
      await kitchen.write('flows.json', JSON.stringify([{ id: 'lk', type: 'tab' }, ...nodes]));
      await kitchen.write('flows_cred.json', JSON.stringify(Object.fromEntries(hubs)));
      const settings =
        "{ uiHost: '127.0.0.1', uiPort: 0, credentialSecret: false, telemetry: { enabled: false }, flowFile: 'flows.json' }";
      const file = await kitchen.write('settings.js', `module.exports = ${settings};`);
      const program = join(packagesFolder('node-red@5.0.7'), 'node_modules/node-red/red.js');
      const args = [program, '--userDir', kitchen.folder, '--settings', file];
      return kitchen.spawn(process.execPath, args, environment(kitchen.trust));
    },
  },
  {
    heading: 'ioBroker',
    trust: 'NODE_EXTRA_CA_CERTS=/etc/latchkey-ca.pem',
    skipReason: () => withoutPackages(...IOBROKER),
    start(kitchen) {
      const [script = ''] = kitchen.blocks('js');
      const quick = script.replace("schedule('*", "schedule('* *");
      return startIobroker(kitchen, packagesFolder(...IOBROKER), quick, environment(kitchen.trust));
    },
  },
  {
    heading: 'Homebridge',
    skipReason: () => without('/usr/bin/curl', '/usr/bin/jq') ?? withoutPackages(...HOMEBRIDGE),
    async start(kitchen) {
      await writeScript(kitchen);
      const [platform = ''] = kitchen.blocks('json');
      const quick = platform.replace('"MINUTES"', '"SECONDS"');
      // Loopback alone: it would announce itself on the network.
      const bridge = '{"name": "Bridge", "username": "0E:00:00:00:00:01", "pin": "031-45-154", "bind": ["lo"]}';
      await kitchen.write('config.json', `{"bridge": ${bridge}, "platforms": [${quick}]}`);
      const packages = join(packagesFolder(...HOMEBRIDGE), 'node_modules');
      const args = ['--user-storage-path', kitchen.folder, '--plugin-path', packages, '--no-qrcode'];
      return kitchen.spawn(process.execPath, [join(packages, 'homebridge/bin/homebridge'), ...args]);
    },
  },
  {
    heading: 'An MCP client',
    trust: 'NODE_EXTRA_CA_CERTS=/etc/latchkey-ca.pem',
    skipReason: () => withoutPackages('@modelcontextprotocol/sdk@1.32.2'),
    async start(kitchen) {
      const [program = ''] = kitchen.blocks('js');
      const packages = join(packagesFolder('@modelcontextprotocol/sdk@1.32.2'), 'node_modules');
      if (!existsSync(join(kitchen.folder, 'node_modules')))
        await symlink(packages, join(kitchen.folder, 'node_modules'));
      const loop = program.replace(
        /^console\.log\((.*)\);$/m,
        'for (;; await new Promise((go) => setTimeout(go, 1000))) await $1.catch(console.error);',
      );
      return kitchen.spawn(process.execPath, [await kitchen.write('agent.mjs', loop)], environment(kitchen.trust));
    },
    answer: answerMcp,
  },
  {
    heading: 'A unit of your own',
    trust: '--cacert /etc/latchkey-ca.pem',
    skipReason: () => without('/usr/bin/curl'),
    async start(kitchen) {
      const [unit = ''] = kitchen.blocks('ini');
      const [script = ''] = kitchen.blocks('sh');
      // As systemd does: another test runs the unit itself.
      const [, id = ''] = /^SetCredential=client_id:(.*)$/m.exec(unit) ?? [];
      await kitchen.write('client_id', id);
      await kitchen.write('client_secret', kitchen.secret);
      const file = await kitchen.write('read-heating', trusting(script, kitchen));
      return kitchen.repeat(file, [], { CREDENTIALS_DIRECTORY: kitchen.folder });
    },
  },
];
