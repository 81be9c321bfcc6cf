// An owner's name with a certificate of an ACME server, by the commands of docs/certificate.md.
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { NamedCheckResult } from '../../../src/doctor/check-result.ts';
import { spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { ACME_SERVER_TOOLS, AcmeServer } from '../../support/acme-server.ts';
import { browserSkipReason, DESKTOP, startBrowser } from '../../support/browser.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const GUIDE = readFileSync(join(ROOT, 'docs/certificate.md'), 'utf8');
const HOOK = join(ROOT, 'scripts/deb.d/install-certificate');
const NAME = 'hub.home.example';
const TOOLS = [...ACME_SERVER_TOOLS, '/usr/bin/certbot', '/usr/bin/lego', '/usr/bin/certutil', '/usr/bin/unshare'];

let folder: string;
let acme: AcmeServer;
let hub: HubProcess;
let fan: CredentialsResponse;

setUpOnce(
  async (parts) => {
    folder = parts.use(stateFolder()).path;
    acme = parts.use(await AcmeServer.start(folder));
    const emulator = parts.use(await startPortal());
    hub = parts.use(await HubProcess.start({ emulator }));
    fan = await hub.addAppliance('fan');
    await hub.pair('fan', emulator);
    // The machine's own roots, in a mount namespace of each command: the root of the ACME server.
    const [hash = ''] = (
      await run('/usr/bin/openssl', ['x509', '-noout', '-subject_hash', '-in', acme.rootFile])
    ).stdout.split('\n');
    await mkdir(join(folder, 'roots'));
    await writeFile(join(folder, 'roots', `${hash}.0`), await readFile(acme.rootFile));
    // What certbot's plugin for a DNS provider does.
    const auth = `#!/bin/sh\nexec ${acme.dnsHook} present "_acme-challenge.$CERTBOT_DOMAIN." "$CERTBOT_VALIDATION"\n`;
    await writeFile(join(folder, 'certbot-hook'), auth, { mode: 0o700 });
    await mkdir(join(folder, '.config/letsencrypt'), { recursive: true });
    const certbot = [
      `server = ${acme.directoryUrl}`,
      ...['config', 'work', 'logs'].map((one) => `${one}-dir = ${folder}/certbot/${one}`),
      // Without a terminal it would wait for up to eight minutes.
      'no-random-sleep-on-renew = true',
    ];
    await writeFile(join(folder, '.config/letsencrypt/cli.ini'), `${certbot.join('\n')}\n`);
    await writeFile(join(folder, 'dns.env'), `EXEC_PATH=${acme.dnsHook}\n`);
  },
  { skipReason, timeout: scaleDeadline(60_000) },
);

async function skipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'mounting needs root';
  const missing = TOOLS.find((tool) => {
    try {
      accessSync(tool, constants.X_OK);
      return false;
    } catch {
      return true;
    }
  });
  return missing === undefined ? await browserSkipReason() : `${missing} is missing`;
}

/** The blocks of one language in a section of the guide. */
function blocks(heading: string, language: string): string[] {
  const section = GUIDE.split(/^##+ /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const found = [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
  return found.filter(([, of]) => of === language).map(([, , block = '']) => block);
}

/** Runs a command of the guide against this ACME server and this hub. */
async function type(command: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const typed = command
    .replaceAll('sudo ', '')
    .replaceAll('/usr/lib/latchkey/install-certificate', HOOK)
    .replace(
      /--dns-cloudflare .*\.ini/,
      `--manual --preferred-challenges dns --manual-auth-hook ${folder}/certbot-hook`,
    )
    .replace('--dns hetzner', `--dns exec --dns.disable-cp --server ${acme.directoryUrl}`)
    .replaceAll('/etc/latchkey/dns.env', `${folder}/dns.env`)
    .replaceAll('/var/lib/lego', `${folder}/lego`);
  const { stdout, stderr } = await run(
    '/usr/bin/unshare',
    ['--mount', 'sh', '-ec', `mount --bind ${folder}/roots /etc/ssl/certs\n${typed}`],
    {
      timeout: scaleDeadline(30_000),
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        LATCHKEY_HUB_STATE_DIR: join(hub.directory, 'state'),
        REQUESTS_CA_BUNDLE: acme.trustFile,
        LEGO_CA_CERTIFICATES: acme.trustFile,
        ...env,
      },
    },
  );
  return stdout + stderr;
}

const installed = (name: string) => join(hub.directory, 'state/certificate', name);
const pageUrl = () => `https://${NAME}:${hub.httpsPort}/`;

describe('a certificate of an ACME server', () => {
  it('certbot obtains a certificate by DNS-01, and the hook installs it with its root for the hub alone', async () => {
    const [issue = '', renew = '', ...more] = blocks('With certbot', 'sh');
    expect(more).toEqual([]);
    await type(issue);
    const chain = await readFile(installed('hub.pem'), 'utf8');
    expect(chain.match(/BEGIN CERTIFICATE/g)).toHaveLength(3);
    expect(chain.endsWith(await readFile(acme.rootFile, 'utf8'))).toBe(true);
    for (const name of ['hub.pem', 'hub.key', '.']) expect(statSync(installed(name)).mode & 0o077, name).toBe(0);

    await type(renew);
    const renewed = await readFile(installed('hub.pem'), 'utf8');
    expect(renewed).not.toBe(chain);
    expect(renewed.endsWith(await readFile(acme.rootFile, 'utf8'))).toBe(true);
  });

  it('the hub shows its page under the name of the owner, without a warning in a browser that trusts the authority', async () => {
    const [lan = ''] = blocks('The hub', 'toml');
    const file = join(hub.directory, 'latchkey.toml');
    const own = lan.replaceAll('/var/lib/latchkey', `${hub.directory}/state`);
    await writeFile(file, (await readFile(file, 'utf8')).replace('[lan]\n', own));
    await hub.reload();
    const root = await readFile(acme.rootFile, 'utf8');
    expect(await hub.authority()).toMatchObject({ fingerprint: spkiFingerprint(root) });

    const home = join(folder, 'browser');
    const store = join(home, '.pki/nssdb');
    await mkdir(store, { recursive: true });
    await run('/usr/bin/certutil', ['-N', '-d', `sql:${store}`, '--empty-password']);
    const open = async () => {
      await using browser = await startBrowser({ whole: true, home, names: [NAME] });
      await using visit = await browser.visit(DESKTOP);
      await visit.page.goto(pageUrl());
      return [visit.page.url(), await visit.page.title()];
    };
    await expect(open()).rejects.toThrow('ERR_CERT_AUTHORITY_INVALID');
    await run('/usr/bin/certutil', ['-A', '-d', `sql:${store}`, '-n', 'acme', '-t', 'C,,', '-i', acme.rootFile]);
    const [url, title] = await open();
    expect(url?.startsWith(pageUrl())).toBe(true);
    expect(title).toBe('Sign in');
  });

  it('the doctor accepts a certificate that is not valid for the address of the hub', async () => {
    const { checks } = JSON.parse((await hub.cli('doctor', '--json')).stdout) as { checks: NamedCheckResult[] };
    const results = new Map(checks.map(({ name, result }) => [name, result]));
    expect([results.get('certificate'), results.get('ports.https_port')]).toEqual(['ok', 'ok']);
    expect((await hub.addAppliance('lamp')).token_endpoint).toBe(`${pageUrl()}oauth/token`);
  });

  it('a renewal by lego fails no token request, on a kept or a new connection', async () => {
    const root = await readFile(acme.rootFile, 'utf8');
    await using onKept = new EndlessClient(true, root);
    await using onNew = new EndlessClient(false, root);
    await eventually(async () => onKept.tokens > 20 && onNew.tokens > 20);
    const [issue = ''] = blocks('With lego', 'sh');
    const [unit = ''] = blocks('With lego', 'ini');
    const [, renew = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    await type(issue);
    // A certificate that is not due yet is not renewed.
    const first = await readFile(installed('hub.pem'), 'utf8');
    await type(renew, { EXEC_PATH: acme.dnsHook });
    expect(await readFile(installed('hub.pem'), 'utf8')).toBe(first);
    await type(renew.replace('renew ', 'renew --days 4000 --no-random-sleep '), { EXEC_PATH: acme.dnsHook });
    const renewed = await readFile(installed('hub.pem'), 'utf8');
    expect(renewed).not.toBe(first);
    await eventually(async () => onNew.serials.has(new X509Certificate(renewed).serialNumber), 60);
    const [kept, fresh] = [onKept.tokens, onNew.tokens];
    await eventually(async () => onKept.tokens > kept + 50 && onNew.tokens > fresh + 20);
    expect([...onKept.failures, ...onNew.failures]).toEqual([]);
    // The connection from before the renewal, with the certificate of that time, is still in use.
    expect([onKept.localPorts.size, onKept.serials.size]).toEqual([1, 1]);
    expect(hub.events('certificate_anchor_changed')).toHaveLength(0);
  });
});

describe('the hook that installs a certificate', () => {
  it.each([
    ['a file without a certificate', '', 'KEY KEY', 'KEY contains no PEM certificate'],
    ['the key of another certificate', '', 'CHAIN OTHER', 'the key in OTHER does not match the certificate in CHAIN'],
    [
      'a chain whose root the machine lacks',
      'umount /etc/ssl/certs; ',
      'CHAIN KEY',
      'the root of CHAIN is not in /etc/ssl/certs: ',
    ],
  ])('the hook refuses %s in one line, and changes nothing', async (_what, before, args, message) => {
    const lineage = join(folder, `certbot/config/live/${NAME}`);
    const files: Readonly<Record<string, string>> = {
      CHAIN: join(lineage, 'fullchain.pem'),
      KEY: join(lineage, 'privkey.pem'),
      OTHER: join(folder, 'acme-server.key'),
      TRUST: acme.trustFile,
    };
    const fill = (text: string) => text.replaceAll(/CHAIN|KEY|OTHER|TRUST/g, (name) => files[name] ?? '');
    const content = () => Promise.all(['hub.pem', 'hub.key'].map((name) => readFile(installed(name), 'utf8')));
    const unchanged = await content();
    const failed = await type(`${before}${HOOK} ${fill(args)}`).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/^latchkey: [^\n]*\n$/) });
    expect(failed).toMatchObject({ stderr: expect.stringContaining(fill(message)) });
    expect(await content()).toEqual(unchanged);
  });
});

/** A client that requests tokens by the hub's name without a pause, and what it has seen. */
class EndlessClient implements AsyncDisposable {
  tokens = 0;
  readonly failures: string[] = [];
  readonly localPorts = new Set<number | undefined>();
  /** The serial numbers of the certificates that the hub has presented. */
  readonly serials = new Set<string>();
  readonly #agent: Agent;
  readonly #running: Promise<void>;
  #stopped = false;

  /** @param keepAlive whether it keeps one connection, or opens one for each request */
  constructor(keepAlive: boolean, ca: string) {
    this.#agent = new Agent({ keepAlive, maxSockets: 1, ca, servername: NAME });
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) await this.#request().catch((error: Error) => this.failures.push(error.message));
  }

  async #request(): Promise<void> {
    const sent = request({
      agent: this.#agent,
      host: '127.0.0.1',
      port: hub.httpsPort,
      method: 'POST',
      path: '/oauth/token',
      auth: `${fan.client_id}:${fan.client_secret}`,
      headers: { host: `${NAME}:${hub.httpsPort}`, 'content-type': 'application/x-www-form-urlencoded' },
    }).end('grant_type=client_credentials');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const socket = response.socket as TLSSocket;
    this.localPorts.add(socket.localPort);
    this.serials.add(socket.getPeerCertificate().serialNumber);
    await text(response);
    if (response.statusCode === 200) this.tokens += 1;
    else this.failures.push(`HTTP ${response.statusCode}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#agent.destroy();
  }
}
