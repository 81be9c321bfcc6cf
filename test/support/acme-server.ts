import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { createAgent } from './agent.ts';
import { reservePort } from './hub-process.ts';
import { logFile } from './logs.ts';
import { waitFor } from './wait-for.ts';

const PEBBLE = '/usr/bin/pebble';
const DNS = '/usr/bin/pebble-challtestsrv';

/** The programs that an {@link AcmeServer} needs. */
export const ACME_SERVER_TOOLS = [PEBBLE, DNS, '/usr/bin/curl'];

/** Pebble, an ACME server with a CA of its own, and the DNS server that it asks for challenges; both on loopback. */
export class AcmeServer implements AsyncDisposable {
  /** The URL of its directory (RFC 8555, 7.1.1). */
  readonly directoryUrl: string;
  /** The certificate that its own HTTPS server is trusted by. */
  readonly trustFile: string;
  /** The root of the certificates that it issues, PEM. */
  readonly rootFile: string;
  /**
   * A program that creates a DNS record, and deletes it: `present NAME VALUE`, `cleanup NAME`, as lego's provider `exec`
   * calls it.
   */
  readonly dnsHook: string;
  readonly #resources: AsyncDisposableStack;

  private constructor(folder: string, directoryUrl: string, resources: AsyncDisposableStack) {
    this.directoryUrl = directoryUrl;
    this.trustFile = join(folder, 'acme-server.pem');
    this.rootFile = join(folder, 'root.pem');
    this.dnsHook = join(folder, 'dns-hook');
    this.#resources = resources;
  }

  /** @param folder for its files */
  static async start(folder: string): Promise<AcmeServer> {
    await using resources = new AsyncDisposableStack();
    const ports = { acme: await reservePort(), management: await reservePort(), dns: await reservePort() };
    const records = await reservePort();
    const server = new AcmeServer(folder, `https://127.0.0.1:${ports.acme}/dir`, resources);
    const authority = await createAuthority();
    const leaf = await issueLeaf(authority, { names: [], addresses: ['127.0.0.1'], now: Date.now() });
    await writeFile(server.trustFile, authority.certificate);
    await writeFile(join(folder, 'acme-server.chain'), leaf.certificate);
    await writeFile(join(folder, 'acme-server.key'), leaf.key, { mode: 0o600 });
    const pebble = {
      listenAddress: `127.0.0.1:${ports.acme}`,
      managementListenAddress: `127.0.0.1:${ports.management}`,
      certificate: join(folder, 'acme-server.chain'),
      privateKey: join(folder, 'acme-server.key'),
      // No challenge of these kinds is used.
      httpPort: 1,
      tlsPort: 1,
    };
    await writeFile(join(folder, 'pebble.json'), JSON.stringify({ pebble }));
    const curl = `curl -sS --fail --data "$data" http://127.0.0.1:${records}`;
    await writeFile(
      server.dnsHook,
      `#!/bin/sh\nset -e\ncase $1 in\n` +
        `present) data="{\\"host\\":\\"$2\\",\\"value\\":\\"$3\\"}"; ${curl}/set-txt ;;\n` +
        `cleanup) data="{\\"host\\":\\"$2\\"}"; ${curl}/clear-txt ;;\nesac\n`,
    );
    await chmod(server.dnsHook, 0o700);
    const unused = ['-http01', '', '-https01', '', '-tlsalpn01', ''];
    const dns = `127.0.0.1:${ports.dns}`;
    resources.use(run(DNS, [...unused, '-dns01', dns, '-management', `127.0.0.1:${records}`]));
    resources.use(run(PEBBLE, ['-config', join(folder, 'pebble.json'), '-dnsserver', dns, '-strict']));
    const agent = resources.adopt(createAgent({ connect: { ca: authority.certificate } }), (one) => one.close());
    const root = await waitFor(async () => {
      const { body, statusCode } = await request(`https://127.0.0.1:${ports.management}/roots/0`, {
        dispatcher: agent,
      });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`HTTP ${statusCode}: ${text}`);
      return text;
    });
    await writeFile(server.rootFile, root);
    // Both must be ready before a client starts.
    await waitFor(() => request(`http://127.0.0.1:${records}/`).then(({ body }) => body.dump()));
    const moved = resources.move();
    return Object.assign(server, { [Symbol.asyncDispose]: () => moved.disposeAsync() });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

function run(program: string, args: readonly string[]): AsyncDisposable {
  // Without these, Pebble waits before each validation, and rejects some of the correct nonces.
  const env = { PATH: process.env['PATH'], PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' };
  const child: ChildProcess = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const log = createWriteStream(logFile('acme'), { mode: 0o600 });
  child.stdout?.pipe(log);
  child.stderr?.pipe(log);
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
